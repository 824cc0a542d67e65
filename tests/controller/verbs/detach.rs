//! Detaching disks: idempotent, and only from the requested node.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use diskplugin::disk::FailureKind;

use crate::verbs::kit::detach::attached;
use crate::verbs::kit::{POLL_TOLERANCE, Setup, minutes, node_one, node_two, seconds, text};

#[tokio::test(start_paused = true)]
async fn detach_returns_after_the_detachment_and_polls_rarely() {
    let setup = Setup::new(&["--detach-delay=3s"]);
    let disk = attached(&setup, "pvc-1").await;
    setup.cloud.clear_calls();
    let begun = Instant::now();
    setup.detach(&disk, &node_one()).await;
    assert!(begun.elapsed() <= Duration::from_secs(3) + POLL_TOLERANCE);
    assert!(setup.attachments(&disk).is_empty());
    assert_eq!(setup.cloud.calls()[0].action, "DetachDisk");
    assert_eq!(setup.calls("DetachDisk"), 1);
    assert!(setup.calls("DescribeDisks") <= 5);
}

#[tokio::test(start_paused = true)]
async fn detach_of_a_detached_or_deleted_disk_or_from_a_deleted_node_succeeds() {
    for alternatives in ["first", "last", "seeded"] {
        let setup = Setup::new(&["--detach-delay=1s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = attached(&setup, "pvc-1").await;
        setup.detach(&disk, &node_one()).await;
        setup.detach(&disk, &node_one()).await;
        setup.disks.detacher.detach_everywhere(minutes(1), &disk).await.unwrap();
        setup.delete(&disk).await;
        setup.detach(&disk, &node_one()).await;
        setup.disks.detacher.detach_everywhere(minutes(1), &disk).await.unwrap();
        let disk = attached(&setup, "pvc-2").await;
        assert!(setup.cloud.remove_instance(node_one()));
        setup.detach(&disk, &node_one()).await;
        assert!(setup.attachments(&disk).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn detach_of_a_disk_on_another_node_succeeds_without_detaching_it() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&[]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = attached(&setup, "pvc-1").await;
        setup.detach(&disk, &node_two()).await;
        assert_eq!(setup.attachments(&disk), [("i-one".to_owned(), "Attached".to_owned())]);
    }
}

#[tokio::test(start_paused = true)]
async fn detach_everywhere_detaches_from_the_current_node() {
    let setup = Setup::new(&["--detach-delay=2s"]);
    let disk = attached(&setup, "pvc-1").await;
    setup.disks.detacher.detach_everywhere(minutes(1), &disk).await.unwrap();
    assert!(setup.attachments(&disk).is_empty());
}

#[tokio::test(start_paused = true)]
async fn detach_everywhere_includes_a_node_to_which_the_disk_is_attaching() {
    for flags in [
        &["--attach-delay=4s"][..],
        &["--stale=2s"],
        &["--stale=2s", "--attach-delay=4s", "--detach-delay=2s"],
    ] {
        let setup = Setup::new(flags);
        let disk = setup.disk("pvc-1").await;
        setup.attach_externally(&disk, &node_two()).await;
        let detached = setup.disks.detacher.detach_everywhere(minutes(1), &disk).await;
        detached.unwrap_or_else(|error| panic!("{flags:?}: {}", text(&error)));
        assert!(setup.attachments(&disk).is_empty(), "{flags:?}");
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(setup.attachments(&disk).is_empty(), "{flags:?}");
    }
}

/// In whole seconds: a call that ends with an observation takes slightly longer.
fn rounded(begun: Instant) -> Duration {
    Duration::from_secs(begun.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_stuck_detachment_exceeds_the_deadline_and_the_retry_succeeds_after_it_ends() {
    for alternatives in ["first", "last"] {
        let setup = Setup::new(&["--detach-delay=1s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = attached(&setup, "pvc-1").await;
        setup.fault("DetachDisk", &json!("fails-later"));
        // The second call ends because the operation is overdue.
        for limit in [20, 5] {
            let begun = Instant::now();
            let late = setup
                .disks
                .detacher
                .detach(seconds(20), &disk, &node_one())
                .await
                .unwrap_err();
            assert_eq!(
                (rounded(begun), late.failure_kind()),
                (Duration::from_secs(limit), FailureKind::DeadlineExceeded)
            );
            let seen = format!("last observed: disk {disk} is Detaching, attached to i-one");
            for part in ["detach disk", "from node i-one", &seen] {
                assert!(text(&late).contains(part), "{}", text(&late));
            }
        }
        assert_eq!(setup.calls("DetachDisk"), 1);
        setup.cloud.release(&disk);
        setup
            .restarted()
            .detacher
            .detach(minutes(1), &disk, &node_one())
            .await
            .unwrap();
        assert!(setup.attachments(&disk).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn detach_succeeds_after_a_lost_response() {
    for loss in [
        "reset-before",
        "reset-after",
        "empty",
        "internal-error",
        "internal-error-after",
    ] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let setup = Setup::new(&["--detach-delay=3s", stale]);
            let disk = attached(&setup, "pvc-1").await;
            setup.fault("DetachDisk", &json!(loss));
            let detached = setup.disks.detacher.detach(minutes(1), &disk, &node_one()).await;
            detached.unwrap_or_else(|error| panic!("{loss} {stale}: {}", text(&error)));
            assert!(setup.attachments(&disk).is_empty(), "{loss} {stale}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn detach_of_an_attaching_disk_waits_and_then_detaches_it() {
    let setup = Setup::new(&["--attach-delay=5s"]);
    let disk = setup.disk("pvc-1").await;
    setup.attach_externally(&disk, &node_one()).await;
    setup.detach(&disk, &node_one()).await;
    assert!(setup.attachments(&disk).is_empty());
}

#[tokio::test(start_paused = true)]
async fn detach_waits_for_a_stopping_node_and_reports_the_cloud_code_at_the_deadline() {
    let setup = Setup::new(&[]);
    let disk = attached(&setup, "pvc-1").await;
    setup.configure(&json!({"delays": {"power": "5s"}}));
    setup.cloud.set_instance_power(node_one(), false);
    setup.detach(&disk, &node_one()).await;
    let disk = attached(&setup, "pvc-2").await;
    setup.configure(&json!({"delays": {"power": "1h"}}));
    setup.cloud.set_instance_power(node_one(), false);
    let late = setup
        .disks
        .detacher
        .detach(seconds(20), &disk, &node_one())
        .await
        .unwrap_err();
    for part in [disk.as_str(), "i-one", "IncorrectInstanceStatus", "RequestId"] {
        assert!(text(&late).contains(part), "{}", text(&late));
    }
}
