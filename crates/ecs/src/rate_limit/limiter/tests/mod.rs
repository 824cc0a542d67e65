use std::sync::atomic::{AtomicU32, Ordering};

use fake_ecs::TokioClock;
use jiff::Timestamp;
use tokio::task::JoinSet;

use super::*;

mod configured;

/// A limiter at the beginning of a minute.
fn limiter() -> Arc<RateLimiter> {
    let clock = TokioClock::starting_at(Timestamp::from_second(1_800_000_005).unwrap());
    Arc::new(RateLimiter::new(Arc::new(clock)))
}

fn soon(seconds: u64) -> Deadline {
    Deadline::after(Duration::from_secs(seconds))
}

fn throttling_error(action: &'static str, code: &str) -> Error {
    Error::from_response(action, 400, code).with_request_id("R-1")
}

async fn pass(limiter: &RateLimiter, action: &'static str, deadline: Deadline) -> Result<()> {
    let call = || async { Ok(()) };
    limiter.run(action, Priority::for_action(action), deadline, call).await
}

/// Makes one call that the cloud throttles with this wait.
async fn throttle(limiter: &RateLimiter, action: &'static str, code: &str, wait: Option<u64>) {
    let error = || throttling_error(action, code).with_retry_after(wait.map(Duration::from_secs));
    let call = || async { Err::<(), _>(error()) };
    let result = limiter.run(action, Priority::for_action(action), soon(600), call).await;
    assert!(result.is_err());
}

#[tokio::test(start_paused = true)]
async fn sixteen_calls_are_sent_at_once_and_more_without_a_response() {
    let limiter = limiter();
    let mut permits = Vec::new();
    for _ in 0..16 {
        permits.push(limiter.acquire("CreateDisk", Priority::Write, soon(1)).await);
    }
    let begun = Instant::now();
    permits.push(limiter.acquire("CreateDisk", Priority::Write, soon(1)).await);
    assert!(permits.iter().all(Result::is_ok));
    assert!(begun.elapsed() > Duration::ZERO);
    for _ in 0..13 {
        permits.push(limiter.acquire("CreateDisk", Priority::Write, soon(2)).await);
    }
    assert!(permits.iter().all(Result::is_ok));
    let took = begun.elapsed();
    assert!(took <= Duration::from_millis(1200), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_closure_of_one_api_delays_neither_its_next_calls_nor_those_of_another_for_long() {
    let limiter = limiter();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_mins(10) {
        throttle(&limiter, "CreateSnapshot", "Throttling", None).await;
    }
    pass(&limiter, "CreateSnapshot", soon(600)).await.unwrap();
    let begun = Instant::now();
    for action in ["CreateSnapshot", "AttachDisk"] {
        for _ in 0..3 {
            pass(&limiter, action, soon(60)).await.unwrap();
        }
    }
    assert!(begun.elapsed() <= Duration::from_secs(6), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn throttling_errors_of_an_api_that_is_seldom_called_delay_its_next_calls_by_seconds() {
    let limiter = limiter();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(50)).await;
        pass(&limiter, "DetachDisk", soon(20)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(50)).await;
        throttle(&limiter, "DetachDisk", "Throttling", None).await;
        let begun = Instant::now();
        for _ in 0..3 {
            pass(&limiter, "DetachDisk", soon(20)).await.unwrap();
        }
        let elapsed = begun.elapsed();
        assert!(elapsed <= Duration::from_secs(4), "{elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_closed_beyond_the_deadline_fails_the_call_immediately_with_the_wait() {
    let limiter = limiter();
    throttle(&limiter, "CreateDisk", "Throttling", Some(30)).await;
    let begun = Instant::now();
    let error = pass(&limiter, "CreateDisk", soon(20)).await.unwrap_err();
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(error.kind(), Kind::Throttled);
    assert!(error.retry_after() >= Some(Duration::from_secs(30)));
    let text = error.to_string();
    for part in ["Throttling", "R-1", "30.0 s", "not sent"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(pass(&limiter, "CreateDisk", soon(31)).await.is_ok());
    assert!(begun.elapsed() >= Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_throttled_api_closes_alone_and_a_throttled_account_closes_all() {
    let limiter = limiter();
    throttle(&limiter, "CreateDisk", "Throttling", Some(30)).await;
    assert!(pass(&limiter, "DeleteDisk", soon(1)).await.is_ok());
    throttle(&limiter, "DescribeDisks", "Throttling.User", Some(30)).await;
    for action in ["DeleteDisk", "AttachDisk", "DetachDisk"] {
        let error = pass(&limiter, action, soon(10)).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Throttled, "{action}");
        assert!(error.to_string().contains("Throttling.User"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn throttled_calls_in_flight_and_throttled_probes_are_sent_once() {
    let limiter = limiter();
    let sent = Arc::new(AtomicU32::new(0));
    let mut calls = JoinSet::new();
    for _ in 0..40 {
        let (limiter, sent) = (Arc::clone(&limiter), Arc::clone(&sent));
        calls.spawn(async move {
            loop {
                let call = || async {
                    sent.fetch_add(1, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    Err::<(), _>(throttling_error("CreateDisk", "Throttling"))
                };
                let _ = limiter.run("CreateDisk", Priority::Write, soon(600), call).await;
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(sent.swap(0, Ordering::SeqCst), 16);
    // After 1, 2, 4, 8, 16 and 32 seconds; then when the minute ends.
    tokio::time::sleep(Duration::from_secs(50)).await;
    assert_eq!(sent.swap(0, Ordering::SeqCst), 6);
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!((1..=5).contains(&sent.load(Ordering::SeqCst)), "{sent:?}");
    calls.shutdown().await;
}

/// Queues calls of these actions while the account is closed, and returns the order in which they are sent.
async fn order_of(actions: Vec<(&'static str, Priority, u64)>) -> Vec<(&'static str, u64)> {
    let limiter = limiter();
    throttle(&limiter, "DescribeRegions", "Throttling.User", Some(5)).await;
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut calls = JoinSet::new();
    for (action, priority, seconds) in actions {
        let (limiter, order) = (Arc::clone(&limiter), Arc::clone(&order));
        calls.spawn(async move {
            let call = || async {
                order.lock().unwrap().push((action, seconds));
                Ok(())
            };
            limiter.run(action, priority, soon(seconds), call).await
        });
        tokio::task::yield_now().await;
    }
    assert!(calls.join_all().await.iter().all(Result::is_ok));
    std::mem::take(&mut order.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn calls_of_an_account_are_ordered_by_priority_and_deadline() {
    let sent = order_of(vec![
        ("DescribeDisks", Priority::List, 900),
        ("DescribeDisks", Priority::Poll, 900),
        ("CreateDisk", Priority::Write, 901),
        ("AttachDisk", Priority::Attach, 902),
        ("AttachDisk", Priority::Attach, 900),
        ("DetachDisk", Priority::Detach, 903),
    ])
    .await;
    let actions: Vec<_> = sent.iter().map(|(action, seconds)| (*action, *seconds)).collect();
    assert_eq!(actions[0], ("DetachDisk", 903));
    assert_eq!(actions[1], ("AttachDisk", 900));
    assert_eq!(actions[2], ("AttachDisk", 902));
    assert_eq!(actions.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn no_priority_starves() {
    let mut actions = vec![("DescribeDisks", Priority::List, 9000)];
    let urgent = [
        ("AttachDisk", Priority::Attach, 3600),
        ("DetachDisk", Priority::Detach, 3600),
    ];
    actions.extend(urgent.into_iter().cycle().take(40));
    let sent = order_of(actions).await;
    let turn = sent.iter().position(|(action, _)| *action == "DescribeDisks");
    assert!((2..12).contains(&turn.unwrap()), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_canceled_call_is_not_sent_and_unblocks_the_next() {
    let limiter = limiter();
    throttle(&limiter, "CreateDisk", "Throttling", Some(30)).await;
    let never = || async { panic!("sent") };
    let canceled = limiter.run::<(), _>("CreateDisk", Priority::Write, soon(600), never);
    let next = pass(&limiter, "CreateDisk", soon(900));
    let (canceled, next) = tokio::join!(soon(5).bound(canceled), next);
    assert!(canceled.is_err() && next.is_ok());
}

#[tokio::test(start_paused = true)]
async fn canceled_calls_in_flight_free_their_slots() {
    let limiter = limiter();
    for _ in 0..1000 {
        let hang = std::future::pending::<Result<()>>;
        let call = limiter.run("CreateDisk", Priority::Write, soon(600), hang);
        assert!(Deadline::after(Duration::from_millis(20)).bound(call).await.is_err());
    }
    assert!(pass(&limiter, "CreateDisk", soon(1)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_hung_probe_delays_others_by_at_most_two_seconds() {
    let limiter = limiter();
    throttle(&limiter, "CreateDisk", "Throttling", Some(3)).await;
    let begun = Instant::now();
    let hang = std::future::pending::<Result<()>>;
    let hanging = limiter.run("CreateDisk", Priority::Write, soon(60), hang);
    let next = pass(&limiter, "CreateDisk", soon(100));
    tokio::select! {
        result = hanging => panic!("{result:?}"),
        result = next => assert!(result.is_ok()),
    }
    assert!(begun.elapsed() <= Duration::from_millis(5_500), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn errors_about_concurrency_reduce_calls_in_flight_and_do_not_close_the_limit() {
    let limiter = limiter();
    let (running, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
    let mut calls = JoinSet::new();
    for _ in 0..200 {
        let (limiter, running) = (Arc::clone(&limiter), Arc::clone(&running));
        let most = Arc::clone(&most);
        calls.spawn(async move {
            loop {
                let call = || async {
                    let now = running.fetch_add(1, Ordering::SeqCst) + 1;
                    most.fetch_max(now, Ordering::SeqCst);
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    running.fetch_sub(1, Ordering::SeqCst);
                    if now > 10 {
                        return Err(throttling_error("ModifyDiskSpec", "Throttling.ConcurrentLimitExceeded"));
                    }
                    Ok(())
                };
                if limiter
                    .run("ModifyDiskSpec", Priority::Write, soon(600), call)
                    .await
                    .is_ok()
                {
                    break;
                }
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    most.store(0, Ordering::SeqCst);
    let begun = Instant::now();
    calls.join_all().await;
    assert!(most.load(Ordering::SeqCst) <= 40, "{most:?}");
    assert!(begun.elapsed() <= Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn ready_resolves_when_a_call_would_be_sent_and_at_the_deadline() {
    let limiter = limiter();
    let begun = Instant::now();
    let ready = limiter.ready("DescribeDisks", Priority::Poll, soon(10)).await;
    assert_eq!(ready, Some(Duration::ZERO));
    assert_eq!(begun.elapsed(), Duration::ZERO);
    throttle(&limiter, "DescribeDisks", "Throttling", Some(7)).await;
    let ready = limiter.ready("DescribeDisks", Priority::Poll, soon(20)).await;
    assert!(ready.is_some());
    assert!(begun.elapsed() >= Duration::from_secs(7));
    assert!(
        pass(&limiter, "DescribeDisks", Deadline::after(Duration::from_millis(1)))
            .await
            .is_ok()
    );
    throttle(&limiter, "DescribeDisks", "Throttling", None).await;
    let begun = Instant::now();
    let ready = limiter
        .ready(
            "DescribeDisks",
            Priority::Poll,
            Deadline::after(Duration::from_millis(100)),
        )
        .await;
    assert_eq!(ready, None);
    assert!(begun.elapsed() <= Duration::from_millis(101));
}
