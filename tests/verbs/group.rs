//! Creation and listing of snapshot groups.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use diskplugin::cloud::{DescribeSnapshotGroups, EcsApi};
use diskplugin::disk::{
    DiskServices, Error, FailureKind, GroupSnapshot, NewDisk, NewGroupSnapshot,
};
use diskplugin::model::{Category, DiskId, Failure, Snapshot, SnapshotGroupId, SnapshotId, Tags};

use crate::kit::{Setup, gib, minutes, new_disk, seconds, text, zone};

pub(crate) fn groups(setup: &Setup) -> Vec<Value> {
    setup.cloud.state()["groups"].as_array().unwrap().clone()
}

pub(crate) fn snapshots(setup: &Setup) -> Vec<Value> {
    setup.cloud.state()["snapshots"].as_array().unwrap().clone()
}

pub(crate) fn new_group(name: &str, sources: &[&DiskId]) -> NewGroupSnapshot {
    NewGroupSnapshot {
        name: name.to_owned(),
        sources: sources.iter().map(|id| (*id).clone()).collect(),
        resource_group: None,
        tags: Tags::new(),
    }
}

pub(crate) fn snapshot_ids(group: &GroupSnapshot) -> BTreeSet<SnapshotId> {
    group.snapshots.iter().map(|row| row.id.clone()).collect()
}

pub(crate) async fn two_disks(setup: &Setup) -> (DiskId, DiskId) {
    (setup.disk("pvc-1").await, setup.disk("pvc-2").await)
}

pub(crate) async fn create_group(
    disks: &Arc<DiskServices>,
    new: &NewGroupSnapshot,
) -> GroupSnapshot {
    let created = disks.snapshotter.create_group(minutes(2), new).await;
    created.unwrap_or_else(|error| panic!("create group: {}", text(&error)))
}

#[tokio::test(start_paused = true)]
async fn create_returns_once_all_snapshots_are_cut_at_one_instant() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--cut-delay=4s", "--snapshot-delay=10m", stale]);
        let (one, two) = two_disks(&setup).await;
        let new = NewGroupSnapshot {
            tags: Tags::from([("team".to_owned(), "blue".to_owned())]),
            resource_group: Some("rg-1".to_owned()),
            ..new_group("group", &[&one, &two])
        };
        let created_group = create_group(&setup.disks, &new).await;
        let times: BTreeSet<_> = created_group
            .snapshots
            .iter()
            .map(|row| row.created)
            .collect();
        assert_eq!(
            (created_group.snapshots.len(), times),
            (2, BTreeSet::from([Some(created_group.created)]))
        );
        let sources: BTreeSet<_> = created_group
            .snapshots
            .iter()
            .filter_map(|s| s.source_disk.clone())
            .collect();
        assert_eq!(sources, new.sources);
        assert_eq!(groups(&setup)[0]["resource_group"], "rg-1");
        tokio::time::sleep(Duration::from_secs(3)).await;
        // ListSnapshots, GetSnapshot and GetVolumeGroupSnapshot all report the group.
        let listed = setup
            .disks
            .inventory
            .list_snapshots(minutes(1), None, None, Snapshot::clone);
        let listed = listed.await.unwrap();
        assert_eq!(listed.len(), 2);
        for row in &listed {
            assert_eq!(row.group, Some(created_group.id.clone()));
            assert_eq!(row.tags["team"], "blue");
            let alone = setup
                .disks
                .snapshotter
                .get(minutes(1), &row.id)
                .await
                .unwrap();
            assert_eq!(alone.group, Some(created_group.id.clone()));
        }
        let read = setup
            .disks
            .snapshotter
            .get_group(minutes(1), &created_group.id, &snapshot_ids(&created_group))
            .await
            .unwrap();
        assert!(read.is_ready() && read.id == created_group.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_returns_the_same_group_and_other_volumes_are_rejected_with_the_difference()
 {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::with_retries(&["--cut-delay=1s", stale]);
        let (one, two) = two_disks(&setup).await;
        let three = setup.disk("pvc-3").await;
        let new = new_group("group", &[&one, &two]);
        let first = create_group(&setup.disks, &new).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        setup.cloud.clear_calls();
        assert_eq!(create_group(&setup.disks, &new).await.id, first.id);
        // Existing tags are not set again.
        assert_eq!(setup.calls("TagResources"), 0);
        assert_eq!(create_group(&setup.restarted(), &new).await.id, first.id);
        for disks in [Arc::clone(&setup.disks), setup.restarted()] {
            let other = new_group("group", &[&one, &three]);
            let rejected = disks
                .snapshotter
                .create_group(minutes(1), &other)
                .await
                .unwrap_err();
            assert!(
                matches!(rejected, Error::AlreadyExists { .. }),
                "{}",
                text(&rejected)
            );
            for part in [
                first.id.as_str(),
                &format!("volume {two} is not requested"),
                &format!("volume {three} is missing"),
            ] {
                assert!(text(&rejected).contains(part), "{}", text(&rejected));
            }
        }
        assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (1, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_lost_at_any_call_results_in_one_group_after_a_restart() {
    for action in [
        "CreateSnapshotGroup",
        "DescribeSnapshotGroups",
        "DescribeSnapshots",
        "TagResources",
    ] {
        for loss in [
            "reset-before",
            "reset-after",
            "truncated",
            "internal-error-after",
        ] {
            let setup = Setup::new(&["--cut-delay=2s", "--stale=2s"]);
            let (one, two) = two_disks(&setup).await;
            let new = new_group("group", &[&one, &two]);
            setup.fault(action, &json!(loss));
            // The driver handles some of these losses itself and returns success.
            let _ = setup.disks.snapshotter.create_group(minutes(1), &new).await;
            let created_group = create_group(&setup.restarted(), &new).await;
            assert_eq!(
                (groups(&setup).len(), snapshots(&setup).len()),
                (1, 2),
                "{action} {loss}"
            );
            for row in snapshots(&setup) {
                assert_eq!(
                    row["tags"]["diskplugin.csi.example/snapshot-group"],
                    created_group.id.as_str()
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_being_created_is_reported_as_aborted_and_can_be_deleted() {
    let setup = Setup::new(&["--cut-delay=30s"]);
    let (one, two) = two_disks(&setup).await;
    let new = new_group("group", &[&one, &two]);
    let late = setup
        .disks
        .snapshotter
        .create_group(seconds(5), &new)
        .await
        .unwrap_err();
    assert_eq!(late.failure_kind(), FailureKind::DeadlineExceeded);
    let id: SnapshotGroupId = groups(&setup)[0]["id"].as_str().unwrap().parse().unwrap();
    let early = setup
        .disks
        .snapshotter
        .get_group(minutes(1), &id, &BTreeSet::new())
        .await
        .unwrap_err();
    assert_eq!(
        early.failure_kind(),
        FailureKind::Aborted,
        "{}",
        text(&early)
    );
    setup
        .disks
        .snapshotter
        .delete_group(minutes(1), &id, &BTreeSet::new())
        .await
        .unwrap();
    assert!(groups(&setup).is_empty() && snapshots(&setup).is_empty());
}

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
        // The driver is creating a replacement, so the caller must retry.
        assert_eq!(
            failed.failure_kind(),
            FailureKind::Unavailable,
            "{}",
            text(&failed)
        );
        assert!(
            text(&failed).contains(&format!("of disk {one}")),
            "{}",
            text(&failed)
        );
        assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (1, 2));
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
    assert!(
        text(&rejected).contains("more than 16"),
        "{}",
        text(&rejected)
    );
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
    create_group(
        &setup.disks,
        &new_group("fit", &many[..16].iter().collect::<Vec<_>>()),
    )
    .await;
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
    assert!(
        text(&rejected).contains("start a pod"),
        "{}",
        text(&rejected)
    );
}

#[tokio::test(start_paused = true)]
async fn concurrent_group_creations_share_polls() {
    let setup = Setup::new(&["--cut-delay=5s"]);
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..30 {
        let (one, two) = (
            setup.disk(&format!("a-{n}")).await,
            setup.disk(&format!("b-{n}")).await,
        );
        let disks = Arc::clone(&setup.disks);
        calls.spawn(async move {
            let new = new_group(&format!("group-{n}"), &[&one, &two]);
            create_group(&disks, &new).await.id
        });
    }
    setup.cloud.clear_calls();
    let created: BTreeSet<_> = calls.join_all().await.into_iter().collect();
    assert_eq!(created.len(), 30);
    // One call per interval covers all 60 snapshots.
    let polls = setup.calls("DescribeSnapshots");
    assert!(polls < 20, "{polls}");
    let query = DescribeSnapshotGroups::default();
    let page = setup
        .cloud
        .ecs()
        .describe_snapshot_groups(minutes(1), &query)
        .await;
    assert_eq!(page.unwrap().rows.len(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_returned_group_is_kept_if_one_of_its_snapshots_fails_later() {
    let setup = Setup::new(&["--snapshot-delay=10m"]);
    let (one, two) = two_disks(&setup).await;
    let new = new_group("group", &[&one, &two]);
    let created_group = create_group(&setup.disks, &new).await;
    setup.cloud.fail_snapshot(&created_group.snapshots[0].id);
    for disks in [Arc::clone(&setup.disks), setup.restarted()] {
        let failed = disks
            .snapshotter
            .create_group(minutes(1), &new)
            .await
            .unwrap_err();
        assert!(
            failed.failure() == Failure::GroupFailed,
            "{}",
            text(&failed)
        );
        assert!(text(&failed).contains("delete it"), "{}", text(&failed));
        assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (1, 2));
    }
}
