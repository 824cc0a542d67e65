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
