//! Cloning a disk, over a snapshot that nobody sees afterwards.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use diskplugin::disk::{DiskServices, Error, FailureKind, NewDisk};
use diskplugin::model::{Category, Disk, DiskId, Snapshot};

use crate::kit::{
    Setup, available, between, gib, minutes, new_snapshot, node_one, seconds, text, new_disk, zone,
};

fn snapshots(setup: &Setup) -> Vec<Value> {
    setup.cloud.state()["snapshots"].as_array().unwrap().clone()
}

async fn cloned(disks: &Arc<DiskServices>, new: &NewDisk, source: &DiskId) -> Disk {
    let made = disks
        .provisioner
        .create_clone(minutes(5), new, source)
        .await;
    made.unwrap_or_else(|error| panic!("{}", text(&error)))
}

/// A disk that was attached once, as all that are worth cloning.
async fn used(setup: &Setup, name: &str) -> DiskId {
    let disk = setup.disk(name).await;
    setup.attach(&disk, &node_one()).await;
    disk
}

#[tokio::test(start_paused = true)]
async fn a_clone_is_made_from_a_snapshot_that_is_gone_afterwards() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&[
            "--cut-delay=2s",
            "--create-delay=3s",
            "--never-attached",
            stale,
        ]);
        let source = used(&setup, "source").await;
        let disk = cloned(&setup.disks, &new_disk("pvc-1"), &source).await;
        assert_ne!(disk.id, source);
        assert!(disk.source_snapshot.is_some());
        assert!(snapshots(&setup).is_empty(), "{stale}");
        // A repeated call takes no second one, before and after a restart.
        for disks in [Arc::clone(&setup.disks), setup.restarted()] {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let again = cloned(&disks, &new_disk("pvc-1"), &source).await;
            assert_eq!((again.id, snapshots(&setup).len()), (disk.id.clone(), 0));
        }
        assert_eq!((setup.calls("CreateSnapshot"), setup.rows().len()), (1, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_clone_may_be_larger_elsewhere_and_of_another_category_but_never_smaller() {
    let setup = Setup::new(&[]);
    let source = used(&setup, "source").await;
    let new = NewDisk {
        places: vec![zone("b").into()],
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
    let refused = setup
        .disks
        .provisioner
        .create_clone(minutes(1), &new, &source)
        .await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, Error::OutOfRange { .. }), "{refused:?}");
    assert!(
        text(&refused).contains(source.as_str()),
        "{}",
        text(&refused)
    );
    // It was found out before a snapshot was taken.
    assert_eq!(
        (setup.calls("CreateSnapshot"), snapshots(&setup).len()),
        (2, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn the_clone_of_a_disk_that_was_never_written_to_is_blank() {
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
    // One that was made from a snapshot is not blank, though nobody attached it.
    setup.attach(&source, &node_one()).await;
    let snapshot = setup.snapshot("snap", &source).await;
    let restored = NewDisk {
        snapshot: Some(snapshot),
        ..new_disk("restored")
    };
    let restored = setup.create(&restored).await
        .id;
    let refused = setup
        .disks
        .provisioner
        .create_clone(minutes(1), &new_disk("pvc-2"), &restored)
        .await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, Error::NeverAttached { .. }),
        "{refused:?}"
    );
    assert_eq!(refused.failure_kind(), FailureKind::FailedPrecondition);
}

#[tokio::test(start_paused = true)]
async fn a_name_of_another_source_is_refused_and_a_blank_disk_is_no_clone() {
    let setup = Setup::with_retries(&["--stale=1s"]);
    let (source, other) = (used(&setup, "source").await, used(&setup, "other").await);
    let disk = cloned(&setup.disks, &new_disk("pvc-1"), &source).await;
    let blank = setup.disk("pvc-2").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    for (name, from, parts) in [
        (
            "pvc-1",
            Some(&other),
            [disk.id.as_str(), source.as_str(), other.as_str()],
        ),
        (
            "pvc-2",
            Some(&source),
            [blank.as_str(), "none", source.as_str()],
        ),
        (
            "pvc-1",
            None,
            [disk.id.as_str(), source.as_str(), "wanted none"],
        ),
    ] {
        let refused = match from {
            Some(from) => {
                setup
                    .disks
                    .provisioner
                    .create_clone(minutes(1), &new_disk(name), from)
                    .await
            }
            None => {
                setup
                    .disks
                    .provisioner
                    .create(minutes(1), &new_disk(name))
                    .await
            }
        };
        let refused = refused.unwrap_err();
        assert!(
            matches!(refused, Error::Exists { .. }),
            "{}",
            text(&refused)
        );
        for part in parts {
            assert!(text(&refused).contains(part), "{part}: {}", text(&refused));
        }
    }
    assert!(snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_unknown_source_is_not_found_and_one_deleted_meanwhile_does_no_harm() {
    let setup = Setup::new(&["--snapshot-delay=30s"]);
    let none = "d-none".parse().unwrap();
    let refused = setup
        .disks
        .provisioner
        .create_clone(minutes(1), &new_disk("pvc-1"), &none)
        .await;
    assert!(
        matches!(refused, Err(Error::NoSuchDisk { .. })),
        "{refused:?}"
    );
    let slow = NewDisk {
        categories: vec![Category::CloudEfficiency],
        ..new_disk("source")
    };
    let source = setup.create(&slow).await
        .id;
    let late = setup
        .disks
        .provisioner
        .create_clone(seconds(10), &new_disk("pvc-1"), &source)
        .await;
    assert_eq!(
        late.unwrap_err().failure_kind(),
        FailureKind::DeadlineExceeded
    );
    tokio::time::sleep(Duration::from_secs(25)).await;
    setup.delete(&source).await;
    let disk = cloned(&setup.restarted(), &new_disk("pvc-1"), &source).await;
    assert_eq!((setup.only_disk(), snapshots(&setup).len()), (disk.id, 0));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_at_any_call_ends_with_one_clone_and_no_snapshot_after_a_restart() {
    for action in [
        "CreateSnapshot",
        "DescribeSnapshots",
        "CreateDisk",
        "DescribeDisks",
        "DeleteSnapshot",
    ] {
        for loss in [
            "reset-before",
            "reset-after",
            "truncated",
            "internal-error-after",
        ] {
            for nth in 1..3 {
                let setup = Setup::new(&["--cut-delay=1s", "--create-delay=1s", "--stale=1s"]);
                let source = used(&setup, "source").await;
                setup.configure(&json!({"faults": []}));
                let fault = json!({"action": action, "from": nth, "kind": loss});
                setup.configure(&json!({"faults": [fault]}));
                for disks in [Arc::clone(&setup.disks), setup.restarted()] {
                    let new = available("pvc-1");
                    let provisioner = &disks.provisioner;
                    let _ = provisioner.create_clone(minutes(1), &new, &source).await;
                }
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
async fn nothing_is_left_when_no_disk_can_be_had_and_the_next_call_takes_another() {
    let setup = Setup::new(&[]);
    let source = used(&setup, "source").await;
    for sold in [json!(["*/*"]), json!(["cn-beijing-a/*"])] {
        setup.configure(&json!({"out_of_stock": sold}));
        let refused = setup
            .disks
            .provisioner
            .create_clone(minutes(1), &new_disk("pvc-1"), &source)
            .await;
        assert_eq!(
            refused.unwrap_err().failure_kind(),
            FailureKind::ResourceExhausted
        );
        assert!(snapshots(&setup).is_empty());
    }
    // The provisioner comes back with another zone.
    let new = NewDisk {
        places: vec![zone("b").into()],
        ..new_disk("pvc-1")
    };
    let disk = cloned(&setup.disks, &new, &source).await;
    assert_eq!((disk.zone, snapshots(&setup).len()), (Some(zone("b")), 0));
}

#[tokio::test(start_paused = true)]
async fn the_snapshot_of_an_interrupted_clone_is_deleted_with_the_clone_or_after_a_day() {
    let leave = async |setup: &Setup, source: &DiskId| {
        // The answer of the deletion is an error, and nobody repeats the call.
        setup.fault(
            "DeleteSnapshot",
            &json!({"code": {"status": 500, "code": "InternalError"}}),
        );
        let left = setup
            .disks
            .provisioner
            .create_clone(minutes(1), &new_disk("pvc-1"), source)
            .await;
        assert_eq!(left.unwrap_err().failure_kind(), FailureKind::Unavailable);
        assert_eq!(snapshots(setup).len(), 1);
        let rows = setup.rows();
        let clone = rows
            .iter()
            .find(|row| row["id"] != source.as_str())
            .unwrap();
        clone["id"].as_str().unwrap().parse::<DiskId>().unwrap()
    };
    let setup = Setup::new(&[]);
    let source = used(&setup, "source").await;
    let clone = leave(&setup, &source).await;
    // It is nobody's snapshot.
    let listed = setup
        .disks
        .inventory
        .list_snapshots(minutes(1), None, None, Snapshot::clone);
    assert!(listed.await.unwrap().is_empty());
    setup.delete(&clone).await;
    assert!(snapshots(&setup).is_empty());

    let setup = Setup::new(&[]);
    let source = used(&setup, "source").await;
    leave(&setup, &source).await;
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert!(snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_the_same_name_as_the_volume_is_another_one() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    let source = used(&setup, "source").await;
    let asked = setup.snapshot("same", &source).await;
    cloned(&setup.disks, &new_disk("same"), &source).await;
    assert_eq!(snapshots(&setup)[0]["id"], asked.as_str());
    let again = setup
        .disks
        .snapshotter
        .create(minutes(1), &new_snapshot("same", &source))
        .await;
    assert_eq!(again.unwrap().id, asked);
}

#[tokio::test(start_paused = true)]
async fn the_clone_of_an_encrypted_disk_is_encrypted() {
    let setup = Setup::new(&[]);
    let secret = NewDisk {
        encrypted: true,
        ..new_disk("source")
    };
    let source = setup.create(&secret).await
        .id;
    assert!(
        cloned(&setup.disks, &new_disk("pvc-1"), &source)
            .await
            .encrypted
    );
}

#[tokio::test(start_paused = true)]
async fn the_echo_of_an_old_refusal_does_not_make_the_clone_of_a_disk_with_data_blank() {
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
