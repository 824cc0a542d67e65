//! Waiting for attachments: failures, deadlines, and concurrent operations on the disk or the node.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn a_failed_attachment_is_reported_with_the_first_poll_that_proves_it_and_can_be_retried() {
    // Time of the failure, lag of reads, and latest report in milliseconds.
    for (fails, stale, reported) in [
        ("100ms", "0s", 20_000),
        ("100ms", "2s", 20_000),
        ("2s", "0s", 5000),
        ("2s", "2s", 5500),
        ("20s", "0s", 22_000),
        ("20s", "2s", 24_000),
    ] {
        let setup = Setup::new(&[&format!("--attach-delay={fails}"), &format!("--stale={stale}")]);
        let disk = setup.disk("pvc-1").await;
        setup.fault("AttachDisk", &json!("fails-later"));
        let begun = Instant::now();
        let failed = setup.try_attach(minutes(2), &disk, &node_one()).await.unwrap_err();
        let took = begun.elapsed();
        assert!(took <= Duration::from_millis(reported), "{took:?}");
        assert_failure(&failed, Failure::AttachFailed);
        assert_error(&failed, FailureKind::Internal, &[disk.as_str(), "i-one"]);
        setup.attach(&disk, &node_one()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn attach_waits_for_an_external_attachment_on_the_node() {
    for setup in Setup::alternatives(&["--attach-delay=4s"]) {
        let (disk, other) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
        setup.attach_externally(&other, &node_one()).await;
        let begun = Instant::now();
        setup.attach(&disk, &node_one()).await;
        assert!(begun.elapsed() <= Duration::from_secs(13), "{:?}", begun.elapsed());
        assert_eq!(setup.attachments(&other), attached_to(&node_one()));
        // One external call, and calls of the driver at 0, 0.5, 1.5, 3.5 and 7.5 seconds.
        assert!(setup.calls("AttachDisk") <= 6, "{}", setup.calls("AttachDisk"));
    }
}

#[tokio::test(start_paused = true)]
async fn attach_waits_while_the_disk_is_detaching_from_another_node() {
    let setup = Setup::new(&["--detach-delay=10s", "--attach-delay=1s"]);
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_two()).await;
    let off = setup.try_detach(seconds(1), &disk, &node_two()).await.unwrap_err();
    assert_eq!(off.failure_kind(), FailureKind::DeadlineExceeded);
    setup.attach(&disk, &node_one()).await;
}

#[tokio::test(start_paused = true)]
async fn attach_waits_for_a_disk_in_creation() {
    let setup = Setup::new(&["--create-delay=5s"]);
    let disk = setup.unmanaged_disk(Tags::new()).await;
    setup.attach(&disk, &node_one()).await;
}

#[tokio::test(start_paused = true)]
async fn attach_waits_for_a_starting_node_and_reports_the_cloud_code_at_the_deadline() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.configure(&json!({"delays": {"power": "5s", "ready": "3s"}}));
    assert!(setup.cloud.set_instance_power(node_one(), true));
    setup.attach(&disk, &node_one()).await;
    setup.configure(&json!({"delays": {"power": "1h"}}));
    setup.cloud.set_instance_power(node_two(), false);
    let other = setup.disk("pvc-2").await;
    let late = setup.try_attach(seconds(20), &other, &node_two()).await.unwrap_err();
    let parts = [other.as_str(), "i-two", "IncorrectInstanceStatus", "RequestId"];
    assert_names(&late, &parts);
}

#[tokio::test(start_paused = true)]
async fn deadline_exceeded_reports_the_last_observed_status_and_the_retry_succeeds() {
    let setup = Setup::new(&["--attach-delay=30s"]);
    let disk = setup.disk("pvc-1").await;
    let begun = Instant::now();
    let late = setup.try_attach(seconds(10), &disk, &node_one()).await.unwrap_err();
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    let observed = format!("last observed: disk {disk} is Attaching");
    assert_error(&late, FailureKind::DeadlineExceeded, &[&observed]);
    setup.cloud.clear_calls();
    setup.restarted().attach(&disk, &node_one()).await;
    assert_eq!(setup.calls("AttachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn attach_of_a_disk_deleted_meanwhile_is_not_found() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.fault("AttachDisk", &json!("reset-before"));
    client(&setup.cloud).delete_disk(minutes(1), &disk).await.unwrap();
    let gone = setup.try_attach(minutes(1), &disk, &node_one()).await.unwrap_err();
    assert!(matches!(gone, Error::NoSuchDisk { .. }), "{gone:?}");
}
