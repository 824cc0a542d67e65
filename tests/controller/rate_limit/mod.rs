//! The rate limiter against servers with quotas that are not configured in the client, in virtual time.

mod pipeline;
mod server;
mod shared_quota;

use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::Deadline;
use ecs::rate_limit::{Priority, RateLimiter};
use pipeline::{Report, pipeline, volumes};
use server::{Config, Latency, Rule, Server};
use tokio::task::JoinSet;
use tokio::time::Instant;

const NONE: Latency = Latency::Fixed(2);
const JITTER: Latency = Latency::Lognormal(60.0, 0.6);

#[track_caller]
fn within(report: &Report, seconds: f64, throttled: usize) {
    assert!(report.seconds <= seconds, "{report:?}");
    assert!(report.throttled <= throttled, "{report:?}");
}

/// Seconds between two polls in a run that needs about one poll for every second volume.
fn gap(rule: Rule) -> u64 {
    match rule {
        Rule::Window(60, 60) => 1000,
        Rule::Window(1 | 2, 1) => 400,
        _ => 200,
    }
}

fn config(rule: Rule) -> Config {
    Config {
        poll_gap_ms: gap(rule),
        ..Config::of(rule)
    }
}

#[tokio::test(start_paused = true)]
async fn quotas_of_windows_that_all_apis_have() {
    for (name, rule, count, seconds) in [
        ("10/1s", Rule::Window(10, 1), 500, 60.0),
        ("2/1s", Rule::Window(2, 1), 100, 58.0),
        ("60/60s", Rule::Window(60, 60), 100, 78.0),
        ("5/1s", Rule::Window(5, 1), 250, 60.0),
        ("100/1s", Rule::Window(100, 1), 500, 55.0),
        ("200/60s", Rule::Window(200, 60), 400, 85.0),
    ] {
        within(&volumes(name, count, config(rule)).await, seconds, 25);
        let stated = Config {
            states_wait: true,
            ..config(rule)
        };
        let name = format!("{name}, wait stated");
        within(&volumes(&name, count, stated).await, seconds, 25);
    }
}

#[tokio::test(start_paused = true)]
async fn the_clocks_of_cloud_and_client_may_differ() {
    for (rule, count, seconds) in [
        (Rule::Window(10, 1), 500, 60.0),
        (Rule::Window(2, 1), 100, 60.0),
        (Rule::Window(60, 60), 100, 78.0),
    ] {
        for skew_ms in [-1000, -370, 370, 1000] {
            for start_second in [4, 31, 57] {
                let name = format!("{rule:?}, skew {skew_ms} ms, from second {start_second}");
                let config = Config {
                    skew_ms,
                    start_second,
                    ..config(rule)
                };
                within(&volumes(&name, count, config).await, seconds, 30);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_minute_that_ends_soon_after_the_first_error_is_not_taken_for_a_rate() {
    for seed in 1..=16 {
        let name = format!("500/60s, seed {seed}");
        let config = Config {
            start_second: (seed * 7) % 60,
            skew_ms: 211 * (seed % 9 - 4),
            ..config(Rule::Window(500, 60))
        };
        within(&volumes(&name, 600, config).await, 80.0, 30);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_take_their_time() {
    for (rule, count, latency, seconds, throttled) in [
        (Rule::Window(10, 1), 500, Latency::Fixed(60), 62.0, 25),
        (Rule::Window(10, 1), 500, JITTER, 65.0, 25),
        (Rule::Window(10, 1), 300, Latency::Fixed(300), 55.0, 34),
        (Rule::Window(2, 1), 100, Latency::Fixed(60), 60.0, 25),
        (Rule::Window(2, 1), 100, JITTER, 62.0, 27),
        (Rule::Window(2, 1), 100, Latency::Fixed(300), 62.0, 27),
        (Rule::Window(60, 60), 100, Latency::Fixed(60), 78.0, 25),
        (Rule::Window(60, 60), 100, JITTER, 78.0, 25),
        (Rule::Window(60, 60), 100, Latency::Fixed(300), 78.0, 25),
    ] {
        let name = format!("{rule:?}, {latency:?}");
        let config = Config {
            latency,
            ..config(rule)
        };
        within(&volumes(&name, count, config).await, seconds, throttled);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_arrive_unevenly_do_not_lower_the_pace_for_long() {
    for seed in 1..=8 {
        for (rule, count, latency, seconds, throttled) in [
            (Rule::Window(10, 1), 500, JITTER, 66.0, 35),
            (Rule::Window(2, 1), 100, JITTER, 70.0, 45),
            (Rule::Window(2, 1), 100, Latency::Lognormal(300.0, 0.3), 75.0, 45),
        ] {
            let name = format!("{rule:?}, {latency:?}, seed {seed}");
            let config = Config {
                latency,
                seed,
                start_second: 3 + i64::try_from(seed).unwrap(),
                skew_ms: 137 * i64::try_from(seed).unwrap(),
                ..config(rule)
            };
            within(&volumes(&name, count, config).await, seconds, throttled);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn quotas_of_other_kinds() {
    for (name, rule, count, seconds, throttled) in [
        ("sliding 10/1s", Rule::Sliding(10, 1), 500, 60.0, 25),
        ("sliding 60/60s", Rule::Sliding(60, 60), 100, 130.0, 30),
        ("bucket 60, 1/s", Rule::Bucket(60.0, 1.0), 150, 110.0, 40),
        ("bucket 20, 10/s", Rule::Bucket(20.0, 10.0), 500, 60.0, 25),
        ("1/1s", Rule::Window(1, 1), 50, 63.0, 40),
        ("20/60s", Rule::Window(20, 60), 40, 70.0, 30),
        ("sliding 10/60s", Rule::Sliding(10, 60), 40, 210.0, 60),
    ] {
        within(&volumes(name, count, config(rule)).await, seconds, throttled);
    }
}

#[tokio::test(start_paused = true)]
async fn quotas_that_differ_by_api() {
    for (name, actions, account, seconds, throttled) in [
        (
            "create 2/s, attach 60/60s",
            &[("CreateDisk", Rule::Window(2, 1)), ("AttachDisk", Rule::Window(60, 60))][..],
            Rule::Unlimited,
            75.0,
            30,
        ),
        (
            "create 60/60s, attach 5/s",
            &[("CreateDisk", Rule::Window(60, 60)), ("AttachDisk", Rule::Window(5, 1))],
            Rule::Unlimited,
            80.0,
            30,
        ),
        (
            "describe 60/60s",
            &[("DescribeDisks", Rule::Window(60, 60))],
            Rule::Unlimited,
            30.0,
            5,
        ),
        ("account 10/1s", &[], Rule::Window(10, 1), 55.0, 25),
        ("account 300/60s", &[], Rule::Window(300, 60), 80.0, 30),
    ] {
        let config = Config {
            actions,
            account,
            ..Config::of(Rule::Unlimited)
        };
        within(&volumes(name, 100, config).await, seconds, throttled);
    }
}

#[tokio::test(start_paused = true)]
async fn a_quota_of_which_another_program_takes_half() {
    const ACTIONS: [&str; 5] = ["CreateDisk", "AttachDisk", "DetachDisk", "DeleteDisk", "DescribeDisks"];
    for (name, rule, count, gap, seconds, throttled) in [
        ("shared 10/1s", Rule::Window(10, 1), 250, 200, 66.0, 40),
        ("shared 60/60s", Rule::Window(60, 60), 60, 2000, 130.0, 30),
    ] {
        let server = Server::new(config(rule));
        let (other, mut tasks) = (Arc::clone(&server), JoinSet::new());
        tasks.spawn(async move {
            loop {
                for action in ACTIONS {
                    let _ = other.admit(action, false);
                }
                tokio::time::sleep(Duration::from_millis(gap)).await;
            }
        });
        let report = pipeline(name, count, server, true).await;
        within(&report, seconds, throttled);
        tasks.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_quota_sixty_calls_at_once_are_hardly_delayed() {
    for latency in [0, 60, 300] {
        let server = Server::new(Config {
            latency: Latency::Fixed(latency),
            ..Config::of(Rule::Unlimited)
        });
        let limiter = Arc::new(RateLimiter::new(server.clock()));
        let begun = Instant::now();
        let mut calls = JoinSet::new();
        for _ in 0..60 {
            let (server, limiter) = (Arc::clone(&server), Arc::clone(&limiter));
            calls.spawn(async move {
                let call = || server.call("CreateDisk");
                let deadline = Deadline::after(Duration::from_secs(60));
                limiter.run("CreateDisk", Priority::Write, deadline, call).await
            });
        }
        assert!(calls.join_all().await.iter().all(Result::is_ok));
        let delay = begun.elapsed() - Duration::from_millis(latency);
        println!("60 calls at once, {latency} ms each: delayed by {delay:?}");
        assert!(delay <= Duration::from_millis(400), "{latency}: {delay:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_ignores_throttling_exceeds_the_bounds() {
    for rule in [Rule::Window(10, 1), Rule::Window(60, 60)] {
        let server = Server::new(Config {
            latency: NONE,
            ..config(rule)
        });
        let report = pipeline("no limiter", 100, server, false).await;
        assert!(report.throttled > 25, "{report:?}");
    }
}
