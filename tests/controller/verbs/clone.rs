//! Cloning disks through a temporary snapshot.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use diskplugin::disk::{DiskServices, Error, FailureKind, NewDisk};
use diskplugin::model::{Category, Disk, DiskId};

use crate::verbs::kit::create::retry;
use crate::verbs::kit::{Setup, available, between, gib, minutes, new_disk, node_one, seconds, text, zone};

pub(crate) fn snapshots(setup: &Setup) -> Vec<Value> {
    setup.cloud.state()["snapshots"].as_array().unwrap().clone()
}

pub(crate) async fn cloned(disks: &Arc<DiskServices>, new: &NewDisk, source: &DiskId) -> Disk {
    let created = disks.provisioner.create_clone(minutes(5), new, source).await;
    created.unwrap_or_else(|error| panic!("{}", text(&error)))
}

/// Creates a disk that was attached once, so that it may contain data.
pub(crate) async fn used_disk(setup: &Setup, name: &str) -> DiskId {
    let disk = setup.disk(name).await;
    setup.attach(&disk, &node_one()).await;
    disk
}

#[tokio::test(start_paused = true)]
async fn a_clone_is_created_from_a_snapshot_that_is_deleted_afterwards() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--cut-delay=2s", "--create-delay=3s", "--never-attached", stale]);
        let source = used_disk(&setup, "source").await;
        let disk = cloned(&setup.disks, &new_disk("pvc-1"), &source).await;
        assert_ne!(disk.id, source);
        assert!(disk.source_snapshot.is_some());
        assert!(snapshots(&setup).is_empty(), "{stale}");
        // A repeated call creates no second snapshot, before or after a restart.
        for disks in [Arc::clone(&setup.disks), setup.restarted()] {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let again = cloned(&disks, &new_disk("pvc-1"), &source).await;
            assert_eq!((again.id, snapshots(&setup).len()), (disk.id.clone(), 0));
        }
        assert_eq!((setup.calls("CreateSnapshot"), setup.rows().len()), (1, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_clone_can_differ_in_zone_and_category_and_be_larger_but_not_smaller() {
    let setup = Setup::new(&[]);
    let source = used_disk(&setup, "source").await;
    let new = NewDisk {
        zones: vec![zone("b").into()],
        categories: vec![Category::CloudSsd],
        size: gib(30),
        ..new_disk("pvc-1")
    };
    let disk = cloned(&setup.disks, &new, &source).await;
    assert_eq!((disk.zone, disk.size.0), (Some(zone("b")), 30));
    let new = NewDisk {
        size: gib(1),
        ..new_disk("pvc-2")
    };
    assert_eq!(cloned(&setup.disks, &new, &source).await.size.0, 20);
    let new = NewDisk {
        size: between(1, 19),
        ..new_disk("pvc-3")
    };
    let rejected = setup.disks.provisioner.create_clone(minutes(1), &new, &source).await;
    let rejected = rejected.unwrap_err();
    assert!(matches!(rejected, Error::OutOfRange { .. }), "{rejected:?}");
    assert!(text(&rejected).contains(source.as_str()), "{}", text(&rejected));
    // The error is detected before a snapshot is created.
    assert_eq!((setup.calls("CreateSnapshot"), snapshots(&setup).len()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn the_clone_of_a_never_attached_disk_is_blank() {
    let setup = Setup::new(&["--never-attached"]);
    let source = setup.disk("source").await;
    let new = NewDisk {
        size: gib(1),
        ..new_disk("pvc-1")
    };
    let disk = cloned(&setup.disks, &new, &source).await;
    assert_eq!((disk.source_snapshot.clone(), disk.size.0), (None, 20));
    let again = cloned(&setup.restarted(), &new, &source).await;
    assert_eq!(again.id, disk.id);
    // A disk restored from a snapshot is not blank, although it was never attached.
    setup.attach(&source, &node_one()).await;
    let snapshot = setup.snapshot("snap", &source).await;
    let restored = NewDisk {
        snapshot: Some(snapshot),
        ..new_disk("restored")
    };
    let restored = setup.create(&restored).await.id;
    let rejected = setup
        .disks
        .provisioner
        .create_clone(minutes(1), &new_disk("pvc-2"), &restored)
        .await;
    let rejected = rejected.unwrap_err();
    assert!(matches!(rejected, Error::NeverAttached { .. }), "{rejected:?}");
    assert_eq!(rejected.failure_kind(), FailureKind::FailedPrecondition);
}

#[tokio::test(start_paused = true)]
async fn a_used_name_with_another_source_fails() {
    let setup = Setup::without_canary(&["--stale=1s"]);
    let (source, other) = (used_disk(&setup, "source").await, used_disk(&setup, "other").await);
    let disk = cloned(&setup.disks, &new_disk("pvc-1"), &source).await;
    let blank = setup.disk("pvc-2").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    for (name, from, parts) in [
        (
            "pvc-1",
            Some(&other),
            [disk.id.as_str(), source.as_str(), other.as_str()],
        ),
        ("pvc-2", Some(&source), [blank.as_str(), "none", source.as_str()]),
        ("pvc-1", None, [disk.id.as_str(), source.as_str(), "wanted none"]),
    ] {
        let rejected = match from {
            Some(from) => {
                setup
                    .disks
                    .provisioner
                    .create_clone(minutes(1), &new_disk(name), from)
                    .await
            }
            None => setup.disks.provisioner.create(minutes(1), &new_disk(name)).await,
        };
        let rejected = rejected.unwrap_err();
        assert!(matches!(rejected, Error::AlreadyExists { .. }), "{}", text(&rejected));
        for part in parts {
            assert!(text(&rejected).contains(part), "{part}: {}", text(&rejected));
        }
    }
    assert!(snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_source_is_not_found_and_a_source_deleted_meanwhile_can_be_cloned() {
    let setup = Setup::new(&["--snapshot-delay=30s"]);
    let none = "d-none".parse().unwrap();
    let new = new_disk("pvc-1");
    let create = async || setup.disks.provisioner.create_clone(seconds(20), &new, &none).await;
    let rejected = retry(100, create).await;
    assert!(matches!(rejected, Err(Error::NoSuchDisk { .. })), "{rejected:?}");
    let slow = NewDisk {
        categories: vec![Category::CloudEfficiency],
        ..new_disk("source")
    };
    let source = setup.create(&slow).await.id;
    let late = setup
        .disks
        .provisioner
        .create_clone(seconds(10), &new_disk("pvc-1"), &source)
        .await;
    assert_eq!(late.unwrap_err().failure_kind(), FailureKind::DeadlineExceeded);
    tokio::time::sleep(Duration::from_secs(25)).await;
    setup.delete(&source).await;
    let (restarted, new) = (setup.restarted(), new_disk("pvc-1"));
    let create = async || restarted.provisioner.create_clone(seconds(30), &new, &source).await;
    let disk = retry(100, create).await.unwrap();
    assert_eq!((setup.only_disk(), snapshots(&setup).len()), (disk.id, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_of_any_call_leaves_one_clone_and_no_snapshot_after_a_restart() {
    for action in [
        "CreateSnapshot",
        "DescribeSnapshots",
        "CreateDisk",
        "DescribeDisks",
        "DeleteSnapshot",
    ] {
        for loss in ["reset-before", "reset-after", "truncated", "internal-error-after"] {
            for nth in 1..3 {
                let setup = Setup::new(&["--cut-delay=1s", "--create-delay=1s", "--stale=1s"]);
                let source = used_disk(&setup, "source").await;
                setup.configure(&json!({"faults": []}));
                let fault = json!({"action": action, "from": nth, "times": 1_000_000, "kind": loss});
                setup.configure(&json!({"faults": [fault]}));
                // Until its deadline the client's retries fail too.
                for disks in [Arc::clone(&setup.disks), setup.restarted()] {
                    let new = available("pvc-1");
                    let provisioner = &disks.provisioner;
                    let _ = provisioner.create_clone(seconds(10), &new, &source).await;
                }
                setup.configure(&json!({"faults": []}));
                let disk = cloned(&setup.restarted(), &available("pvc-1"), &source).await;
                assert_eq!(
                    (setup.rows().len(), snapshots(&setup).len()),
                    (2, 0),
                    "{action} {loss} {nth}"
                );
                assert_ne!(disk.id, source);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_out_of_stock_clone_leaves_no_snapshot_and_a_retry_in_another_zone_succeeds() {
    let setup = Setup::new(&[]);
    let source = used_disk(&setup, "source").await;
    for out_of_stock in [json!(["*/*"]), json!(["cn-beijing-a/*"])] {
        setup.configure(&json!({"out_of_stock": out_of_stock}));
        let rejected = setup
            .disks
            .provisioner
            .create_clone(minutes(1), &new_disk("pvc-1"), &source)
            .await;
        assert_eq!(rejected.unwrap_err().failure_kind(), FailureKind::ResourceExhausted);
        assert!(snapshots(&setup).is_empty());
    }
    // The external provisioner retries with another zone.
    let new = NewDisk {
        zones: vec![zone("b").into()],
        ..new_disk("pvc-1")
    };
    let disk = cloned(&setup.disks, &new, &source).await;
    assert_eq!((disk.zone, snapshots(&setup).len()), (Some(zone("b")), 0));
}

#[tokio::test(start_paused = true)]
async fn the_clone_of_an_encrypted_disk_is_encrypted() {
    let setup = Setup::new(&[]);
    let encrypted = NewDisk {
        encrypted: true,
        ..new_disk("source")
    };
    let source = setup.create(&encrypted).await.id;
    assert!(cloned(&setup.disks, &new_disk("pvc-1"), &source).await.encrypted);
}

#[tokio::test(start_paused = true)]
async fn a_replayed_never_attached_error_does_not_make_the_clone_of_a_used_disk_blank() {
    let setup = Setup::new(&["--never-attached"]);
    let source = setup.disk("source").await;
    setup.configure(&json!({"out_of_stock": ["*/*"]}));
    let early = setup
        .disks
        .provisioner
        .create_clone(minutes(1), &new_disk("pvc-1"), &source)
        .await;
    assert!(early.is_err() && setup.calls("CreateSnapshot") > 0);
    setup.configure(&json!({"out_of_stock": []}));
    setup.attach(&source, &node_one()).await;
    let disk = cloned(&setup.restarted(), &new_disk("pvc-1"), &source).await;
    assert!(disk.source_snapshot.is_some());
}
