//! Temporary rejections of AttachDisk and DetachDisk: number of retries, and operations on other disks meanwhile.

use crate::verbs::kit::*;

/// The fake cloud rejects the action with `code` for `duration`.
fn reject(setup: &Setup, action: &str, code: &str, duration: &str) {
    let kind = error_code(403, code);
    let fault = json!({"action": action, "for": duration, "kind": kind});
    setup.configure(&json!({"faults": [fault]}));
}

async fn elapsed<T, E>(call: impl Future<Output = Result<T, E>>) -> Duration {
    let start = Instant::now();
    assert!(call.await.is_ok());
    start.elapsed()
}

#[tokio::test(start_paused = true)]
async fn rejections_for_30_seconds_cost_few_calls() {
    let codes = [
        "IncorrectInstanceStatus",
        "InvalidOperation.Conflict",
        "IncorrectDiskStatus",
    ];
    for (action, codes) in [("AttachDisk", codes), ("DetachDisk", codes)] {
        for code in codes {
            let setup = Setup::new(&["--attach-delay=2s", "--detach-delay=2s"]);
            let disk = if action == "AttachDisk" {
                setup.disk("pvc-1").await
            } else {
                setup.attached("pvc-1").await
            };
            setup.cloud.clear_calls();
            reject(&setup, action, code, "30s");
            let (attacher, detacher, node) = (&setup.disks.attacher, &setup.disks.detacher, node_one());
            let duration = if action == "AttachDisk" {
                elapsed(with_retries(|| attacher.attach(minutes(2), &disk, &node))).await
            } else {
                elapsed(with_retries(|| detacher.detach(minutes(2), &disk, &node))).await
            };
            let (writes, reads) = (setup.calls(action), setup.calls("DescribeDisks"));
            assert!(writes <= 8, "{action} {code}: {writes}");
            assert!(reads <= 40, "{action} {code}: {reads}");
            assert!(duration <= Duration::from_secs(45), "{action} {code}: {duration:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn all_disks_of_a_rejecting_instance_share_the_retries() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let disks = setup.create_disks(6).await;
    reject(&setup, "AttachDisk", "IncorrectInstanceStatus", "30s");
    let attach = |setup: Setup, disk| async move {
        let node = node_one();
        with_retries(|| setup.try_attach(minutes(2), &disk, &node)).await
    };
    assert!(setup.each(disks, attach).await.iter().all(Result::is_ok));
    let count = &setup.cloud.counts()["AttachDisk"];
    assert!(count.refused <= 8, "{count:?}");
    assert!(setup.calls("DescribeDisks") <= 60, "{:?}", setup.cloud.counts());
}

#[tokio::test(start_paused = true)]
async fn repeated_calls_with_short_deadlines_keep_the_long_pauses() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let disk = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    reject(&setup, "AttachDisk", "IncorrectInstanceStatus", "30s");
    let mut calls = 0;
    loop {
        calls += 1;
        match setup.try_attach(seconds(15), &disk, &node_one()).await {
            Ok(_) => break,
            Err(error) => {
                let parts = ["IncorrectInstanceStatus", "RequestId", "i-one", disk.as_str()];
                assert_error(&error, FailureKind::Aborted, &parts);
            }
        }
        sleep(1).await;
    }
    assert!(calls >= 3);
    assert!(setup.calls("AttachDisk") <= 10, "{}", setup.calls("AttachDisk"));
}

#[tokio::test(start_paused = true)]
async fn other_disks_are_attached_and_detached_between_the_retries() {
    let setup = Setup::new(&["--attach-delay=2s", "--detach-delay=2s"]);
    let attached = setup.attached("pvc-1").await;
    let (first, second) = (setup.disk("pvc-2").await, setup.disk("pvc-3").await);
    let kind = error_code(403, "IncorrectInstanceStatus");
    // At 0, 0.5, 1.5, 3.5 and 7.5 seconds; the next attempt is at 15.5.
    setup.faults("AttachDisk", 5, &kind);
    let (attacher, detacher, node) = (&setup.disks.attacher, &setup.disks.detacher, node_one());
    let others = async {
        sleep(5).await;
        let detach = elapsed(detacher.detach(minutes(1), &attached, &node)).await;
        sleep(2).await;
        (detach, elapsed(attacher.attach(minutes(1), &second, &node)).await)
    };
    let (rejected, (detach, attach)) = tokio::join!(elapsed(attacher.attach(minutes(1), &first, &node)), others);
    assert!(detach <= Duration::from_millis(2500), "{detach:?}");
    assert!(attach <= Duration::from_millis(2500), "{attach:?}");
    // The instance accepted another operation, so the rejected one is retried immediately.
    assert!(rejected <= Duration::from_secs(15), "{rejected:?}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_not_ready_does_not_delay_other_disks_of_the_node() {
    let setup = Setup::new(&["--create-delay=60s", "--attach-delay=2s"]);
    let slow = setup.unmanaged_disk(Tags::new()).await;
    setup.configure(&json!({"delays": {"create": "0s"}}));
    let fast = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    let (attacher, node) = (&setup.disks.attacher, node_one());
    let second = async {
        sleep(3).await;
        elapsed(attacher.attach(minutes(1), &fast, &node)).await
    };
    let first = with_retries(|| attacher.attach(minutes(2), &slow, &node));
    let (_, duration) = tokio::join!(elapsed(first), second);
    assert!(duration <= Duration::from_millis(2500), "{duration:?}");
    assert!(setup.calls("AttachDisk") <= 4, "{}", setup.calls("AttachDisk"));
    assert!(setup.calls("DescribeDisks") <= 60, "{}", setup.calls("DescribeDisks"));
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_does_not_complete_delays_others_for_at_most_30_seconds() {
    let setup = Setup::new(&["--parallel-attach", "--detach-delay=2s"]);
    let (stuck, other) = (setup.attached("pvc-1").await, setup.attached("pvc-2").await);
    setup.fault("DetachDisk", &json!("fails-later"));
    // The driver cannot read whether the instance supports parallel operations.
    setup.configure(&json!({"denied": ["DescribeInstances"]}));
    let (detacher, node) = (&setup.disks.detacher, node_one());
    let second = async {
        sleep(1).await;
        elapsed(with_retries(|| detacher.detach(minutes(5), &other, &node))).await
    };
    let (first, duration) = tokio::join!(detacher.detach(minutes(3), &stuck, &node), second);
    assert_eq!(first.unwrap_err().failure_kind(), FailureKind::DeadlineExceeded);
    assert!(duration <= Duration::from_secs(33), "{duration:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_releases_its_permit_in_every_phase() {
    let setup = Setup::new(&["--attach-delay=20s"]);
    let (first, second) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    let third = setup.disk("pvc-3").await;
    let mut calls = JoinSet::new();
    let services = Arc::clone(&setup.disks);
    // In progress, in the queue, and between two attempts.
    calls.spawn(async move { services.attacher.attach(minutes(5), &first, &node_one()).await });
    let services = Arc::clone(&setup.disks);
    let queued = second.clone();
    calls.spawn(async move { services.attacher.attach(minutes(5), &queued, &node_one()).await });
    sleep(1).await;
    reject(&setup, "AttachDisk", "IncorrectInstanceStatus", "3s");
    let services = Arc::clone(&setup.disks);
    let rejected = third.clone();
    calls.spawn(async move { services.attacher.attach(minutes(5), &rejected, &node_two()).await });
    sleep(2).await;
    calls.shutdown().await;
    sleep(20).await;
    let attacher = &setup.disks.attacher;
    for (disk, node) in [(second, node_one()), (third, node_two())] {
        let duration = elapsed(attacher.attach(minutes(1), &disk, &node)).await;
        assert!(duration <= Duration::from_secs(22), "{duration:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_operation_starts_as_soon_as_a_long_operation_completes() {
    let setup = Setup::new(&["--attach-delay=20s"]);
    let (first, second) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    setup.cloud.clear_calls();
    let (attacher, node) = (&setup.disks.attacher, node_one());
    let both = async {
        tokio::join!(
            elapsed(attacher.attach(minutes(5), &first, &node)),
            elapsed(attacher.attach(minutes(5), &second, &node)),
        )
    };
    let (_, second) = Box::pin(both).await;
    assert!(second <= Duration::from_secs(43), "{second:?}");
    let writes = setup.calls("AttachDisk");
    assert!(writes <= 3, "{writes}");
}
