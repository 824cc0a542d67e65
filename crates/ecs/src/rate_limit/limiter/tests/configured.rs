//! Limits that an operator configures.

use super::*;

/// The times of the first `count` calls of an action without throttling.
async fn sent(limiter: &RateLimiter, action: &'static str, count: usize) -> Vec<Duration> {
    let begun = Instant::now();
    let mut times = Vec::new();
    for _ in 0..count {
        pass(limiter, action, soon(3600)).await.unwrap();
        times.push(begun.elapsed());
    }
    times
}

#[tokio::test(start_paused = true)]
async fn a_configured_limit_spaces_the_calls_of_its_action_only() {
    let limiter = limiter();
    limiter.configure(ConfiguredLimits::from([("DescribeDisks", 2.0)]));
    let times = sent(&limiter, "DescribeDisks", 5).await;
    for (calls, time) in times.iter().enumerate() {
        let due = Duration::from_millis(500) * u32::try_from(calls).unwrap();
        assert!(time.abs_diff(due) <= Duration::from_millis(10), "{times:?}");
    }
    assert_eq!(sent(&limiter, "CreateDisk", 5).await.last(), Some(&Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn the_configured_limit_of_the_account_counts_all_actions() {
    let limiter = limiter();
    limiter.configure(ConfiguredLimits::from([("account", 10.0)]));
    let begun = Instant::now();
    for action in ["CreateDisk", "AttachDisk", "DescribeDisks", "DeleteDisk"] {
        sent(&limiter, action, 5).await;
    }
    let elapsed = begun.elapsed();
    let expected = Duration::from_millis(1900);
    assert!(elapsed.abs_diff(expected) <= Duration::from_millis(50), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_limit_applies_to_waiting_calls() {
    let limiter = limiter();
    limiter.configure(ConfiguredLimits::from([("AttachDisk", 0.01)]));
    pass(&limiter, "AttachDisk", soon(1)).await.unwrap();
    let begun = Instant::now();
    let waiting = pass(&limiter, "AttachDisk", soon(600));
    let change = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        limiter.configure(ConfiguredLimits::default());
    };
    let (result, ()) = tokio::join!(waiting, change);
    result.unwrap();
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_configured_limit_delays_beyond_its_deadline_names_the_limit() {
    let limiter = limiter();
    limiter.configure(ConfiguredLimits::from([("AttachDisk", 0.01), ("account", 0.5)]));
    pass(&limiter, "AttachDisk", soon(1)).await.unwrap();
    let error = pass(&limiter, "AttachDisk", soon(5)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Deadline);
    assert!(error.to_string().contains("AttachDisk=0.01"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_configured_limit_below_the_learned_quota_remains_in_force() {
    let limiter = limiter();
    throttle(&limiter, "DescribeDisks", "Throttling", None).await;
    sent(&limiter, "DescribeDisks", 30).await;
    limiter.configure(ConfiguredLimits::from([("DescribeDisks", 0.5)]));
    let times = sent(&limiter, "DescribeDisks", 4).await;
    assert!(times[3] - times[0] >= Duration::from_millis(5900), "{times:?}");
}

#[tokio::test(start_paused = true)]
async fn probes_of_a_throttled_api_respect_the_configured_limit() {
    let limiter = limiter();
    limiter.configure(ConfiguredLimits::from([("CreateDisk", 0.1)]));
    let begun = Instant::now();
    for _ in 0..4 {
        throttle(&limiter, "CreateDisk", "Throttling", None).await;
    }
    let elapsed = begun.elapsed();
    assert!(elapsed >= Duration::from_millis(29_900), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn an_old_throttling_error_is_not_named_for_a_wait_for_the_configured_limit() {
    let limiter = limiter();
    throttle(&limiter, "CreateDisk", "Throttling", None).await;
    sent(&limiter, "CreateDisk", 3).await;
    limiter.configure(ConfiguredLimits::from([("CreateDisk", 0.01)]));
    sent(&limiter, "CreateDisk", 1).await;
    let error = pass(&limiter, "CreateDisk", soon(5)).await.unwrap_err();
    assert!(error.to_string().contains("CreateDisk=0.01"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_configured_limit_that_delays_nothing_is_not_named() {
    let limiter = limiter();
    limiter.configure(ConfiguredLimits::from([("account", 1000.0)]));
    throttle(&limiter, "CreateDisk", "Throttling", Some(60)).await;
    let error = pass(&limiter, "CreateDisk", soon(5)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Throttled);
    assert!(!error.to_string().contains("account=1000"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_configured_limit_does_not_change_what_is_learned() {
    let (free, limited) = (limiter(), limiter());
    limited.configure(ConfiguredLimits::from([("DescribeDisks", 1000.0)]));
    for limiter in [&free, &limited] {
        throttle(limiter, "DescribeDisks", "Throttling", None).await;
        sent(limiter, "DescribeDisks", 20).await;
    }
    let learned = |limiter: &RateLimiter| {
        let mut reports = limiter.report().into_iter();
        let report = reports.find(|report| report.action == "DescribeDisks");
        report.unwrap().learned
    };
    assert_eq!(learned(&free), learned(&limited));
}
