//! Quotas that are shared with another process, slide, or follow another clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use diskplugin::base::Deadline;
use ecs::rate_limit::{Priority, RateLimiter};
use ecs::retry::run;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::rate_limit::pipeline::pipeline;
use crate::rate_limit::server::{Config, Rule, Server};

/// Two controllers with a limiter each under one quota.
#[tokio::test(start_paused = true)]
async fn two_processes_share_a_quota() {
    for rule in [Rule::Window(10, 1), Rule::Window(60, 60), Rule::Window(2, 1)] {
        let count = if matches!(rule, Rule::Window(10, 1)) { 250 } else { 40 };
        let server = Server::new(Config {
            poll_gap_ms: 2000,
            ..Config::of(rule)
        });
        let (one, other) = tokio::join!(
            pipeline("one", count, Arc::clone(&server), true),
            pipeline("other", count, Arc::clone(&server), true),
        );
        let slower = one.seconds.max(other.seconds);
        assert!(slower <= 120.0, "{rule:?}: one of two processes took {slower:.0} s");
        assert!(server.throttled() <= 150, "{rule:?}: {} throttled", server.throttled());
    }
}

/// A sliding window is the harshest quota that the cloud's texts leave room for ("denied until the next minute" is
/// kinder).
#[tokio::test(start_paused = true)]
async fn a_sliding_minute_with_a_stated_wait_starves_nobody() {
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
        let (limiter, server, passed) = (Arc::clone(&limiter), Arc::clone(&server), Arc::clone(&passed));
        calls.spawn(async move {
            loop {
                let deadline = Deadline::after(Duration::from_secs(120));
                let attempt = || limiter.run("CreateDisk", Priority::Write, deadline, || server.call("CreateDisk"));
                if run("CreateDisk", deadline, attempt).await.is_ok() {
                    let minute = usize::try_from(start.elapsed().as_secs() / 60).unwrap();
                    passed.lock().unwrap()[minute.min(30)] += 1;
                }
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(30 * 60)).await;
    calls.shutdown().await;
    let passed = passed.lock().unwrap().clone();
    assert!(
        passed[3..30].iter().all(|passed| *passed >= 50),
        "of 200 a minute: {passed:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn volumes_under_a_sliding_minute_with_a_stated_wait_are_done() {
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
    let mut counts = BTreeMap::<_, (usize, usize)>::new();
    for entry in server.log() {
        let count = counts.entry(entry.action).or_default();
        count.0 += usize::from(!entry.throttled);
        count.1 += usize::from(entry.throttled);
    }
    let took = start.elapsed();
    assert!(
        done.is_ok(),
        "a call waited 600 s in vain; (passed, throttled) after {took:?}: {counts:?}"
    );
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
            set.spawn(async move { pipeline(&format!("{rule:?} {skew_ms}"), count, own, true).await });
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
