//! Snapshot groups that fail, and groups that the cloud rejects.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use diskplugin::disk::{Error, FailureKind, NewDisk};
use diskplugin::model::{Category, DiskId, Failure, SnapshotGroupId};

use crate::verbs::kit::group::{create_group, groups, new_group, snapshots, two_disks};
use crate::verbs::kit::{Setup, gib, minutes, new_disk, seconds, text, zone};

#[tokio::test(start_paused = true)]
async fn a_group_that_fails_is_reported_deleted_and_replaced() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--cut-delay=2s", stale]);
        let (one, two) = two_disks(&setup).await;
        let new = new_group("group", &[&one, &two]);
        setup.fault("CreateSnapshotGroup", &json!("fails-later"));
        let failed = setup
            .disks
            .snapshotter
            .create_group(minutes(1), &new)
            .await
            .unwrap_err();
        // The failed group is deleted, and the next call creates another.
        assert_eq!(failed.failure_kind(), FailureKind::Internal, "{}", text(&failed));
        assert!(text(&failed).contains(&format!("of disk {one}")), "{}", text(&failed));
        assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (0, 0));
        let replaced = create_group(&setup.disks, &new).await;
        assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (1, 2));
        assert_eq!(create_group(&setup.restarted(), &new).await.id, replaced.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_group_can_be_deleted_without_a_retry() {
    let setup = Setup::new(&["--cut-delay=10s"]);
    let (one, two) = two_disks(&setup).await;
    setup.fault("CreateSnapshotGroup", &json!("fails-later"));
    let new = new_group("group", &[&one, &two]);
    setup
        .disks
        .snapshotter
        .create_group(seconds(5), &new)
        .await
        .unwrap_err();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let id: SnapshotGroupId = groups(&setup)[0]["id"].as_str().unwrap().parse().unwrap();
    let failed = setup
        .disks
        .snapshotter
        .get_group(minutes(1), &id, &BTreeSet::new())
        .await
        .unwrap_err();
    assert_eq!(failed.failure_kind(), FailureKind::Internal);
    setup
        .disks
        .snapshotter
        .delete_group(minutes(1), &id, &BTreeSet::new())
        .await
        .unwrap();
    assert!(groups(&setup).is_empty() && snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn unsupported_combinations_of_disks_are_rejected_with_the_reason() {
    let setup = Setup::new(&[]);
    let create_disk = async |name: &str, letter: &str, category: Category, size: u32| {
        let new = NewDisk {
            zones: vec![zone(letter).into()],
            categories: vec![category],
            size: gib(size),
            ..new_disk(name)
        };
        setup.create(&new).await.id
    };
    let near = create_disk("near", "a", Category::CloudEssd, 20).await;
    let far = create_disk("far", "b", Category::CloudEssd, 20).await;
    let old = create_disk("old", "a", Category::CloudEfficiency, 20).await;
    let huge = create_disk("huge", "a", Category::CloudEssd, 32 * 1024).await;
    for (name, other, reason) in [
        ("zones", &far, "several zones"),
        ("types", &old, "ESSD family"),
        ("sizes", &huge, "32 TiB"),
    ] {
        let new = new_group(name, &[&near, other]);
        for _ in 0..2 {
            let rejected = setup
                .disks
                .snapshotter
                .create_group(minutes(1), &new)
                .await
                .unwrap_err();
            assert_eq!(
                rejected.failure_kind(),
                FailureKind::FailedPrecondition,
                "{}",
                text(&rejected)
            );
            assert!(text(&rejected).contains(reason), "{}", text(&rejected));
        }
    }
    let mut many = Vec::new();
    for n in 0..17 {
        many.push(create_disk(&format!("many-{n}"), "a", Category::CloudEssd, 20).await);
    }
    setup.cloud.clear_calls();
    let new = new_group("many", &many.iter().collect::<Vec<_>>());
    let rejected = setup
        .disks
        .snapshotter
        .create_group(minutes(1), &new)
        .await
        .unwrap_err();
    assert!(text(&rejected).contains("more than 16"), "{}", text(&rejected));
    assert_eq!(setup.calls("CreateSnapshotGroup"), 0);
    let none: DiskId = "d-none".parse().unwrap();
    let new = new_group("none", &[&near, &none]);
    let rejected = setup
        .disks
        .snapshotter
        .create_group(minutes(1), &new)
        .await
        .unwrap_err();
    assert!(
        matches!(&rejected, Error::NoSuchDisk { disk } if *disk == none),
        "{rejected:?}"
    );
    assert!(groups(&setup).is_empty());
    // Sixteen disks are the maximum and succeed.
    create_group(&setup.disks, &new_group("fit", &many[..16].iter().collect::<Vec<_>>())).await;
}

#[tokio::test(start_paused = true)]
async fn a_group_of_never_attached_disks_is_rejected_with_advice() {
    let setup = Setup::new(&["--never-attached"]);
    let (one, two) = two_disks(&setup).await;
    let new = new_group("group", &[&one, &two]);
    let rejected = setup
        .disks
        .snapshotter
        .create_group(minutes(1), &new)
        .await
        .unwrap_err();
    assert_eq!(rejected.failure_kind(), FailureKind::FailedPrecondition);
    assert!(text(&rejected).contains("start a pod"), "{}", text(&rejected));
}

#[tokio::test(start_paused = true)]
async fn a_returned_group_is_kept_if_one_of_its_snapshots_fails_later() {
    let setup = Setup::new(&["--snapshot-delay=10m"]);
    let (one, two) = two_disks(&setup).await;
    let new = new_group("group", &[&one, &two]);
    let created_group = create_group(&setup.disks, &new).await;
    setup.cloud.fail_snapshot(&created_group.snapshots[0].id);
    for disks in [Arc::clone(&setup.disks), setup.restarted()] {
        let failed = disks.snapshotter.create_group(minutes(1), &new).await.unwrap_err();
        assert!(failed.failure() == Failure::GroupFailed, "{}", text(&failed));
        assert!(text(&failed).contains("delete it"), "{}", text(&failed));
        assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (1, 2));
    }
}
