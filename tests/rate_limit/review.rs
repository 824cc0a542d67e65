//! Unusual quotas and clocks: a hostile review.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diskplugin::base::{Clock, Deadline};
use diskplugin::cloud::rate_limit::{Class, RateLimiter};
use diskplugin::cloud::retry::{Repeat, run};
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::pipeline::{pipeline, volumes};
use crate::server::{Config, Rule, Server};

#[tokio::test(start_paused = true)]
async fn unusual_quotas() {
    let mut bad = Vec::new();
    for (name, rule, count, floor) in [
        ("3/60s", Rule::Window(3, 60), 12, 190.0),
        ("10/60s", Rule::Window(10, 60), 40, 190.0),
        ("30/60s", Rule::Window(30, 60), 90, 130.0),
        ("1000/60s", Rule::Window(1000, 60), 1500, 100.0),
        ("20/10s", Rule::Window(20, 10), 100, 50.0),
        ("100/10s", Rule::Window(100, 10), 500, 50.0),
        ("5/10s", Rule::Window(5, 10), 40, 80.0),
        ("50/1s", Rule::Window(50, 1), 1000, 90.0),
        ("600/3600s", Rule::Window(600, 3600), 400, 40.0),
        ("bucket 5, 0.5/s", Rule::Bucket(5.0, 0.5), 60, 115.0),
        ("bucket 1, 1/s", Rule::Bucket(1.0, 1.0), 60, 65.0),
        ("bucket 100, 2/s", Rule::Bucket(100.0, 2.0), 300, 105.0),
        ("bucket 1000, 5/s", Rule::Bucket(1000.0, 5.0), 1500, 135.0),
        ("sliding 200/60s", Rule::Sliding(200, 60), 400, 70.0),
        ("sliding 20/10s", Rule::Sliding(20, 10), 100, 50.0),
    ] {
        for start_second in [4, 33, 56] {
            for states_wait in [false, true] {
                let config = Config {
                    start_second,
                    states_wait,
                    poll_gap_ms: 300,
                    ..Config::of(rule)
                };
                let name = format!("{name} from {start_second}, stated {states_wait}");
                let owned = name.clone();
                let mut set = JoinSet::new();
                set.spawn(async move { volumes(&owned, count, config).await });
                let run = tokio::time::timeout(Duration::from_secs(3600), set.join_next());
                match run.await.map(Option::unwrap) {
                    Ok(Err(_)) => bad.push(format!(
                        "{name}: a call waited 600 s in vain (floor {floor})"
                    )),
                    Ok(Ok(report)) if report.seconds <= 2.0 * floor && report.throttled <= 60 => {}
                    Ok(Ok(report)) => bad.push(format!(
                        "{name}: {:.0} s (floor {floor}), {} throttled",
                        report.seconds, report.throttled
                    )),
                    Err(_) => bad.push(format!("{name}: not done in an hour (floor {floor})")),
                }
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_much() {
    let mut bad = Vec::new();
    for (rule, count, floor) in [
        (Rule::Window(10, 1), 500, 55.0),
        (Rule::Window(60, 60), 100, 65.0),
        (Rule::Window(200, 60), 400, 70.0),
    ] {
        for skew_ms in [-20_000, -5000, -3000, 3000, 5000, 20_000, 31_000] {
            let config = Config {
                skew_ms,
                poll_gap_ms: 1000,
                ..Config::of(rule)
            };
            let report = volumes(&format!("{rule:?} skew {skew_ms}"), count, config).await;
            if report.seconds > 2.0 * floor || report.throttled > 60 {
                bad.push(format!(
                    "{rule:?} skew {skew_ms}: {:.0} s, {} throttled",
                    report.seconds, report.throttled
                ));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// A clock that can be set.
#[derive(Debug)]
struct SetClock(Instant, AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        let set = self.1.load(Ordering::SeqCst);
        Timestamp::from_second(1_800_000_004 + set).unwrap() + self.0.elapsed()
    }
}

/// Sends a steady demand of two calls a second and returns how many were refused in each minute, and passed.
async fn steady(rule: Rule, sets: &[(u64, i64)], minutes: usize) -> Vec<(usize, usize)> {
    let server = Server::new(Config::of(rule));
    let start = Instant::now();
    let clock = Arc::new(SetClock(start, AtomicI64::new(0)));
    let limiter = Arc::new(RateLimiter::new(Arc::clone(&clock) as Arc<dyn Clock>));
    let counts = Arc::new(Mutex::new(vec![(0, 0); minutes + 2]));
    let mut calls = JoinSet::new();
    for n in 0..minutes * 120 {
        tokio::time::sleep_until(start + Duration::from_millis(500) * u32::try_from(n).unwrap())
            .await;
        for (at, set) in sets {
            if start.elapsed().as_secs() == *at {
                clock.1.store(*set, Ordering::SeqCst);
            }
        }
        let (limiter, server, counts) = (
            Arc::clone(&limiter),
            Arc::clone(&server),
            Arc::clone(&counts),
        );
        calls.spawn(async move {
            let deadline = Deadline::after(Duration::from_secs(60));
            let attempt = || {
                limiter.run("CreateDisk", Class::Order, deadline, || async {
                    let outcome = server.call("CreateDisk").await;
                    let minute = usize::try_from(start.elapsed().as_secs() / 60).unwrap();
                    let mut counts = counts.lock().unwrap();
                    let last = counts.len() - 1;
                    let count = &mut counts[minute.min(last)];
                    match outcome {
                        Ok(()) => count.1 += 1,
                        Err(_) => count.0 += 1,
                    }
                    outcome
                })
            };
            let _ = run("CreateDisk", deadline, Repeat::Freely, attempt).await;
        });
    }
    calls.shutdown().await;
    let counts = counts.lock().unwrap();
    counts[..minutes].to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_does_not_upset_what_is_known_of_a_minute() {
    let mut bad = Vec::new();
    for set in [0, -10, -90, -600, -3600, 90, 3600] {
        let counts = steady(Rule::Window(60, 60), &[(400, set)], 30).await;
        println!("clock set by {set}: (refused, passed) {counts:?}");
        let late: usize = counts[10..].iter().map(|(refused, _)| *refused).sum();
        let passed: usize = counts[10..].iter().map(|(_, passed)| *passed).sum();
        let starved = counts[7..]
            .iter()
            .filter(|(_, passed)| *passed < 10)
            .count();
        if starved > 1 {
            bad.push(format!(
                "set by {set} s: {starved} minutes with less than 10 of 60 calls"
            ));
        }
        if late > 100 || passed < 20 * 50 {
            bad.push(format!(
                "set by {set} s: in 20 minutes {late} refused, {passed} of 1200 passed"
            ));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Another program uses nearly all of the quota for some minutes and then stops.
#[tokio::test(start_paused = true)]
async fn a_quota_that_another_program_gives_back_is_used_again() {
    let mut bad = Vec::new();
    for (rule, other, gap) in [
        (Rule::Window(10, 1), 9, 1000),
        (Rule::Window(600, 60), 540, 60_000),
        (Rule::Window(100, 1), 98, 1000),
    ] {
        let server = Server::new(Config::of(rule));
        let limiter = Arc::new(RateLimiter::new(server.clock()));
        let mut tasks = JoinSet::new();
        let hog = Arc::clone(&server);
        tasks.spawn(async move {
            let start = Instant::now();
            while start.elapsed() < Duration::from_secs(300) {
                for _ in 0..other {
                    let _ = hog.admit("CreateDisk", false);
                }
                tokio::time::sleep(Duration::from_millis(gap)).await;
            }
        });
        let start = Instant::now();
        let passed = Arc::new(Mutex::new(vec![0_u32; 21]));
        for _ in 0..50 {
            let (limiter, server, passed) = (
                Arc::clone(&limiter),
                Arc::clone(&server),
                Arc::clone(&passed),
            );
            tasks.spawn(async move {
                loop {
                    let deadline = Deadline::after(Duration::from_secs(60));
                    let attempt = || {
                        limiter.run("CreateDisk", Class::Order, deadline, || {
                            server.call("CreateDisk")
                        })
                    };
                    if run("CreateDisk", deadline, Repeat::Freely, attempt)
                        .await
                        .is_ok()
                    {
                        let minute = usize::try_from(start.elapsed().as_secs() / 60).unwrap();
                        passed.lock().unwrap()[minute.min(20)] += 1;
                    }
                }
            });
        }
        tokio::time::sleep(Duration::from_secs(20 * 60)).await;
        tasks.shutdown().await;
        let passed = passed.lock().unwrap().clone();
        println!(
            "{rule:?}: passed by minute {passed:?}, throttled {}",
            server.throttled()
        );
        let full = match rule {
            Rule::Window(calls, seconds) => calls * 60 / u32::try_from(seconds).unwrap(),
            _ => 0,
        };
        if passed[7] < full / 2 {
            bad.push(format!(
                "{rule:?}: in the third minute after that, {} calls of {full}",
                passed[7]
            ));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

/// Two controllers with a limiter each under one quota.
#[tokio::test(start_paused = true)]
async fn two_processes_share_a_quota() {
    for rule in [
        Rule::Window(10, 1),
        Rule::Window(60, 60),
        Rule::Window(2, 1),
    ] {
        let count = if matches!(rule, Rule::Window(10, 1)) {
            250
        } else {
            40
        };
        let server = Server::new(Config {
            poll_gap_ms: 2000,
            ..Config::of(rule)
        });
        let (one, other) = tokio::join!(
            pipeline("one", count, Arc::clone(&server), true),
            pipeline("other", count, Arc::clone(&server), true),
        );
        println!(
            "{rule:?}: {:.0} s and {:.0} s, {} throttled",
            one.seconds,
            other.seconds,
            server.throttled()
        );
        let slower = one.seconds.max(other.seconds);
        assert!(
            slower <= 120.0,
            "{rule:?}: one of two processes took {slower:.0} s"
        );
        assert!(
            server.throttled() <= 150,
            "{rule:?}: {} throttled",
            server.throttled()
        );
    }
}

/// A sliding window is the harshest quota that the cloud's texts leave room for ("denied until the next minute" is kinder).
#[tokio::test(start_paused = true)]
async fn a_sliding_minute_with_a_stated_wait_starves_nobody() {
    if std::env::var_os("REVIEW_LOG").is_some() {
        let _ = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .try_init();
    }
    let config = Config {
        states_wait: true,
        poll_gap_ms: 500,
        ..Config::of(Rule::Sliding(200, 60))
    };
    let server = Server::new(config);
    let limiter = Arc::new(RateLimiter::new(server.clock()));
    let start = Instant::now();
    let passed = Arc::new(Mutex::new(vec![0_u32; 31]));
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let (limiter, server, passed) = (
            Arc::clone(&limiter),
            Arc::clone(&server),
            Arc::clone(&passed),
        );
        calls.spawn(async move {
            loop {
                let deadline = Deadline::after(Duration::from_secs(120));
                let attempt = || {
                    limiter.run("CreateDisk", Class::Order, deadline, || {
                        server.call("CreateDisk")
                    })
                };
                if run("CreateDisk", deadline, Repeat::Freely, attempt)
                    .await
                    .is_ok()
                {
                    let minute = usize::try_from(start.elapsed().as_secs() / 60).unwrap();
                    passed.lock().unwrap()[minute.min(30)] += 1;
                }
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    calls.shutdown().await;
    let passed = passed.lock().unwrap().clone();
    println!(
        "passed by minute {passed:?}, throttled {}",
        server.throttled()
    );
    assert!(
        passed[3..30].iter().all(|passed| *passed >= 50),
        "of 200 a minute: {passed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn volumes_under_a_sliding_minute_with_a_stated_wait_are_done() {
    if std::env::var_os("REVIEW_LOG").is_some() {
        let _ = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::DEBUG)
            .try_init();
    }
    let config = Config {
        states_wait: true,
        poll_gap_ms: 300,
        ..Config::of(Rule::Sliding(200, 60))
    };
    let server = Server::new(config);
    let mut set = JoinSet::new();
    let own = Arc::clone(&server);
    let start = Instant::now();
    set.spawn(async move { pipeline("sliding", 400, own, true).await });
    let done = set.join_next().await.unwrap();
    let mut counts = std::collections::BTreeMap::<_, (usize, usize)>::new();
    for entry in server.log() {
        let count = counts.entry(entry.action).or_default();
        count.0 += usize::from(!entry.throttled);
        count.1 += usize::from(entry.throttled);
    }
    println!(
        "after {:.0} s: (passed, throttled) {counts:?}",
        start.elapsed().as_secs_f64()
    );
    assert!(done.is_ok(), "a call waited 600 s in vain: {counts:?}");
}

/// Minutes of a clock that differs from ours by more than 2.5 s, with the wait stated in the headers.
#[tokio::test(start_paused = true)]
async fn a_stated_wait_until_the_end_of_a_minute_of_another_clock_starves_nobody() {
    let mut bad = Vec::new();
    for rule in [Rule::Window(60, 60), Rule::Window(200, 60)] {
        for skew_ms in [-20_000, -5000, -3000, -2000, 0, 2000, 3000, 5000, 20_000] {
            let Rule::Window(count, _) = rule else {
                continue;
            };
            let count = usize::try_from(count).unwrap() * 3 / 2;
            let config = Config {
                skew_ms,
                states_wait: true,
                poll_gap_ms: 1000,
                ..Config::of(rule)
            };
            let server = Server::new(config);
            let mut set = JoinSet::new();
            let own = Arc::clone(&server);
            let start = Instant::now();
            set.spawn(
                async move { pipeline(&format!("{rule:?} {skew_ms}"), count, own, true).await },
            );
            let done = set.join_next().await.unwrap();
            let took = start.elapsed().as_secs_f64();
            if done.is_err() || took > 140.0 {
                bad.push(format!(
                    "{rule:?}, clock off by {skew_ms} ms: {took:.0} s, all done: {}",
                    done.is_ok()
                ));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}
