//! Throttling and missing permissions.

use crate::verbs::kit::*;

/// Number of calls of the action in each minute of the clock.
fn calls_per_minute(setup: &Setup, action: &str) -> BTreeMap<i64, u32> {
    let mut minutes = BTreeMap::new();
    for call in setup.cloud.calls().iter().filter(|call| call.action == action) {
        *minutes.entry(call.at.as_second().div_euclid(60)).or_default() += 1;
    }
    minutes
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_quota_is_waited_for_with_few_calls() {
    let setup = Setup::without_canary(&["--attach-delay=90s", "--throttle=DescribeDisks=10"]);
    let disk = setup.disk("pvc-1").await;
    let node = node_one();
    // The operation takes longer than a call waits for it.
    let attach = async || setup.try_attach(minutes(5), &disk, &node).await;
    assert!(retry(600, attach).await.is_ok());
    // 10 calls within the quota, then at most one probe every 10 seconds.
    for (minute, calls) in calls_per_minute(&setup, "DescribeDisks") {
        assert!(calls <= 18, "{calls} in minute {minute}");
    }
}

#[tokio::test(start_paused = true)]
async fn operations_after_throttled_polls_are_not_polled_more_often() {
    let setup = Setup::without_canary(&["--attach-delay=2s"]);
    for (limit, max_polls) in [(None, Some(8)), (Some(3), None), (None, Some(5))] {
        setup.configure(&json!({"throttle": {"actions": {"DescribeDisks": limit}}}));
        let disk = setup.disk(&format!("pvc-{max_polls:?}")).await;
        // The next minute of the clock.
        sleep(60).await;
        setup.cloud.clear_calls();
        setup.attach(&disk, &node_one()).await;
        let polls = setup.calls("DescribeDisks");
        assert!(
            max_polls.is_none_or(|max_polls| polls <= max_polls),
            "{polls} polls, more than {max_polls:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_waiters_under_throttling_share_one_probe() {
    let setup = Setup::with_nodes(20, &["--attach-delay=30s"]);
    let mut attaching = JoinSet::new();
    for n in 0..20 {
        let disk = setup.disk(&format!("pvc-{n}")).await;
        let (services, node) = (Arc::clone(&setup.disks), format!("i-{n}"));
        let node: InstanceId = node.parse().unwrap();
        attaching.spawn(async move { services.attacher.attach(minutes(5), &disk, &node).await.is_ok() });
    }
    setup.configure(&json!({"throttle": {"actions": {"DescribeDisks": 0}}}));
    sleep(1).await;
    setup.cloud.clear_calls();
    sleep(120).await;
    for (minute, calls) in calls_per_minute(&setup, "DescribeDisks") {
        assert!(calls <= 12, "{calls} in minute {minute}");
    }
    setup.configure(&json!({"throttle": {"actions": null}}));
    assert!(attaching.join_all().await.into_iter().all(|ok| ok));
}

#[tokio::test(start_paused = true)]
async fn reads_with_short_deadlines_do_not_queue_calls_until_the_quota_resets() {
    let setup = Setup::with_nodes(20, &["--attach-delay=90s"]);
    let mut attaching = JoinSet::new();
    let mut disks = Vec::new();
    for n in 0..20 {
        let disk = setup.disk(&format!("pvc-{n}")).await;
        disks.push(disk.clone());
        let (services, node) = (Arc::clone(&setup.disks), format!("i-{n}"));
        let node: InstanceId = node.parse().unwrap();
        attaching.spawn(async move {
            // A call ends while the quota is exhausted; the next one resumes it.
            for _ in 0..100 {
                if services.attacher.attach(minutes(5), &disk, &node).await.is_ok() {
                    return true;
                }
                sleep(5).await;
            }
            false
        });
    }
    setup.configure(&json!({"throttle": {"actions": {"DescribeDisks": 10}}}));
    let start = Instant::now();
    let (mut reads, mut sent) = (JoinSet::new(), Vec::new());
    while start.elapsed() < Duration::from_secs(70) {
        let (services, disk) = (Arc::clone(&setup.disks), disks[sent.len() % 20].clone());
        // The reads end shortly before the quota resets.
        if start.elapsed() < Duration::from_secs(56) {
            reads.spawn(async move { services.inventory.disk(seconds(5), &disk).await.is_ok() });
        }
        tokio::time::sleep(Duration::from_millis(250)).await;
        sent.push(setup.calls("DescribeDisks"));
    }
    reads.join_all().await;
    // The calls of the reads are not queued until the quota resets.
    let max_increase = sent.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(max_increase <= Some(2), "{max_increase:?} within 250 ms: {sent:?}");
    setup.configure(&json!({"throttle": {"actions": null}}));
    assert!(attaching.join_all().await.into_iter().all(|ok| ok));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_respected_under_throttling_and_the_error_names_it() {
    for (limit, step) in [("AttachDisk=0", "attach disk"), ("DescribeDisks=3", "attach disk")] {
        let flags = ["--attach-delay=45s", &format!("--throttle={limit}")];
        let setup = Setup::new(&flags);
        let disk = setup.disk("pvc-1").await;
        let started = Instant::now();
        let late = setup.try_attach(seconds(20), &disk, &node_one()).await.unwrap_err();
        assert!(started.elapsed() <= Duration::from_secs(20));
        let text = text(&late);
        assert!(text.contains(step) && text.contains("Throttling"), "{limit}: {text}");
        assert!(
            matches!(
                late.failure_kind(),
                FailureKind::Unavailable | FailureKind::DeadlineExceeded
            ),
            "{late:?}"
        );
        if limit == "AttachDisk=0" {
            assert_failure(&late, Failure::Throttled);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_create_succeeds_in_the_next_minute_with_client_retries() {
    let setup = Setup::without_canary(&["--throttle=CreateDisk=1"]);
    setup.disk("pvc-1").await;
    let started = Instant::now();
    setup.disk("pvc-2").await;
    // The rest of the minute and the pause in progress at its end.
    assert!(started.elapsed() <= Duration::from_secs(80), "{:?}", started.elapsed());
    for (minute, calls) in calls_per_minute(&setup, "CreateDisk") {
        assert!(calls <= 12, "{calls} in minute {minute}");
    }
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_is_reported_immediately_with_advice() {
    let setup = Setup::without_canary(&[]);
    let disk = setup.disk("pvc-1").await;
    let snapshot = new_snapshot("snap", &disk);
    setup.configure(
        &json!({"denied": ["CreateDisk", "AttachDisk", "DetachDisk", "DeleteDisk",
        "ResizeDisk", "CreateSnapshot"]}),
    );
    let started = Instant::now();
    let (new, node) = (new_disk("pvc-2"), node_one());
    let errors = [
        setup.try_create(minutes(1), &new).await.unwrap_err(),
        setup.try_attach(minutes(1), &disk, &node).await.unwrap_err(),
        setup.try_detach(minutes(1), &disk, &node).await.unwrap_err(),
        setup.try_resize(minutes(1), &disk, gib(30)).await.unwrap_err(),
        setup.try_snapshot(minutes(1), &snapshot).await.unwrap_err(),
        setup.try_delete(minutes(1), &disk).await.unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.failure_kind(), FailureKind::PermissionDenied, "{error:?}");
        assert!(error.failure().advice().contains("RAM policy"), "{error:?}");
        assert!(text(&error).contains("Forbidden.RAM"), "{error:?}");
    }
    assert!(started.elapsed() <= Duration::from_secs(25));
    assert_eq!(setup.row(&disk)["status"], "Available");
}
