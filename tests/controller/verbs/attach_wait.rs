//! Waiting for attachments: failures, deadlines, and concurrent operations on the disk or the node.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use diskplugin::disk::{Error, FailureKind};
use diskplugin::model::Failure;

use crate::common::memory_cloud::client;
use crate::verbs::kit::{Setup, attached_to, minutes, node_one, node_two, seconds, text};

#[tokio::test(start_paused = true)]
async fn a_failed_attachment_is_reported_before_the_deadline_and_can_be_retried() {
    for delay in ["2s", "100ms"] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let setup = Setup::new(&[&format!("--attach-delay={delay}"), stale]);
            let disk = setup.disk("pvc-1").await;
            setup.fault("AttachDisk", &json!("fails-later"));
            let begun = Instant::now();
            let failed = setup
                .disks
                .attacher
                .attach(minutes(2), &disk, &node_one())
                .await
                .unwrap_err();
            assert!(
                failed.failure() == Failure::AttachFailed,
                "{delay} {stale}: {}",
                text(&failed)
            );
            assert_eq!(failed.failure_kind(), FailureKind::Internal);
            assert!(
                text(&failed).contains(disk.as_str()) && text(&failed).contains("i-one"),
                "{failed}"
            );
            assert!(begun.elapsed() <= Duration::from_secs(20), "{:?}", begun.elapsed());
            assert!(
                setup
                    .disks
                    .attacher
                    .attach(minutes(2), &disk, &node_one())
                    .await
                    .is_ok()
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_attachment_is_reported_with_the_first_poll_that_proves_it() {
    // Time of the failure, lag of reads, and latest report in milliseconds.
    for (fails, stale, reported) in [
        ("2s", "0s", 5000),
        ("2s", "2s", 5500),
        ("20s", "0s", 22_000),
        ("20s", "2s", 24_000),
    ] {
        let flags = [&*format!("--attach-delay={fails}"), &*format!("--stale={stale}")];
        let setup = Setup::new(&flags);
        let disk = setup.disk("pvc-1").await;
        setup.fault("AttachDisk", &json!("fails-later"));
        let begun = Instant::now();
        let failed = setup.disks.attacher.attach(minutes(2), &disk, &node_one()).await;
        assert!(
            matches!(&failed, Err(error) if error.failure() == Failure::AttachFailed),
            "{failed:?}"
        );
        let took = begun.elapsed();
        assert!(took <= Duration::from_millis(reported), "{flags:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn attach_waits_for_an_external_attachment_on_the_node() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&["--attach-delay=4s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let (disk, other) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
        setup.attach_externally(&other, &node_one()).await;
        let begun = Instant::now();
        assert!(
            setup
                .disks
                .attacher
                .attach(minutes(1), &disk, &node_one())
                .await
                .is_ok()
        );
        assert!(begun.elapsed() <= Duration::from_secs(13), "{:?}", begun.elapsed());
        assert_eq!(
            (setup.attachments(&disk), setup.attachments(&other)),
            (attached_to(&node_one()), attached_to(&node_one()))
        );
        // One external call, and calls of the driver at 0, 0.5, 1.5, 3.5 and 7.5 seconds.
        assert!(setup.calls("AttachDisk") <= 6, "{}", setup.calls("AttachDisk"));
    }
}

#[tokio::test(start_paused = true)]
async fn attach_waits_while_the_disk_is_detaching_from_another_node() {
    let setup = Setup::new(&["--detach-delay=10s", "--attach-delay=1s"]);
    let disk = setup.disk("pvc-1").await;
    setup.attach(&disk, &node_two()).await;
    let off = setup
        .disks
        .detacher
        .detach(seconds(1), &disk, &node_two())
        .await
        .unwrap_err();
    assert_eq!(off.failure_kind(), FailureKind::DeadlineExceeded);
    let row = setup.disks.attacher.attach(minutes(1), &disk, &node_one()).await;
    assert!(row.unwrap().is_in_use_on(&node_one()));
    assert_eq!(setup.attachments(&disk), attached_to(&node_one()));
}

#[tokio::test(start_paused = true)]
async fn attach_waits_for_a_disk_in_creation() {
    let setup = Setup::new(&["--create-delay=5s"]);
    let disk = setup.unmanaged_disk(diskplugin::model::Tags::new()).await;
    let row = setup.attach(&disk, &node_one()).await;
    assert!(row.is_in_use_on(&node_one()));
}

#[tokio::test(start_paused = true)]
async fn attach_waits_for_a_starting_node_and_reports_the_cloud_code_at_the_deadline() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.configure(&json!({"delays": {"power": "5s", "ready": "3s"}}));
    assert!(setup.cloud.set_instance_power(node_one(), true));
    assert!(
        setup
            .disks
            .attacher
            .attach(minutes(1), &disk, &node_one())
            .await
            .is_ok()
    );
    setup.configure(&json!({"delays": {"power": "1h"}}));
    setup.cloud.set_instance_power(node_two(), false);
    let other = setup.disk("pvc-2").await;
    let late = setup
        .disks
        .attacher
        .attach(seconds(20), &other, &node_two())
        .await
        .unwrap_err();
    for part in [other.as_str(), "i-two", "IncorrectInstanceStatus", "RequestId"] {
        assert!(text(&late).contains(part), "{}", text(&late));
    }
}

#[tokio::test(start_paused = true)]
async fn deadline_exceeded_reports_the_last_observed_status_and_the_retry_succeeds() {
    let setup = Setup::new(&["--attach-delay=30s"]);
    let disk = setup.disk("pvc-1").await;
    let begun = Instant::now();
    let late = setup
        .disks
        .attacher
        .attach(seconds(10), &disk, &node_one())
        .await
        .unwrap_err();
    assert_eq!(
        (begun.elapsed(), late.failure_kind()),
        (Duration::from_secs(10), FailureKind::DeadlineExceeded)
    );
    let seen = format!("last observed: disk {disk} is Attaching");
    assert!(text(&late).contains(&seen), "{}", text(&late));
    setup.cloud.clear_calls();
    assert!(
        setup
            .restarted()
            .attacher
            .attach(minutes(1), &disk, &node_one())
            .await
            .is_ok()
    );
    assert_eq!(setup.calls("AttachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn attach_of_a_disk_deleted_meanwhile_is_not_found() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.fault("AttachDisk", &json!("reset-before"));
    client(&setup.cloud).delete_disk(minutes(1), &disk).await.unwrap();
    let gone = setup
        .disks
        .attacher
        .attach(minutes(1), &disk, &node_one())
        .await
        .unwrap_err();
    assert!(matches!(gone, Error::NoSuchDisk { .. }), "{gone:?}");
}
