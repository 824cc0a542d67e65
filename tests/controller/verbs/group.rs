//! Creation and listing of snapshot groups.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use diskplugin::disk::{Error, FailureKind, NewGroupSnapshot};
use diskplugin::model::{Snapshot, SnapshotGroupId, Tags};
use ecs::DescribeSnapshotGroups;

use crate::common::memory_cloud::client;
use crate::verbs::kit::group::{create_group, groups, new_group, snapshot_ids, snapshots, two_disks};
use crate::verbs::kit::{Setup, minutes, seconds, text};

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
        let times: BTreeSet<_> = created_group.snapshots.iter().map(|row| row.created).collect();
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
            let alone = setup.disks.snapshotter.get(minutes(1), &row.id).await.unwrap();
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
async fn a_repeated_create_returns_the_same_group_and_other_volumes_are_rejected_with_the_difference() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::without_canary(&["--cut-delay=1s", stale]);
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
            let rejected = disks.snapshotter.create_group(minutes(1), &other).await.unwrap_err();
            assert!(matches!(rejected, Error::AlreadyExists { .. }), "{}", text(&rejected));
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
        for loss in ["reset-before", "reset-after", "truncated", "internal-error-after"] {
            let setup = Setup::new(&["--cut-delay=2s", "--stale=2s"]);
            let (one, two) = two_disks(&setup).await;
            let new = new_group("group", &[&one, &two]);
            setup.faults(action, 1_000_000, &json!(loss));
            // Until its deadline the client's retries fail too. The driver handles some of these losses itself.
            let create = setup.disks.snapshotter.create_group(seconds(10), &new);
            let _ = create.await;
            setup.configure(&json!({"faults": []}));
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
    assert_eq!(early.failure_kind(), FailureKind::Aborted, "{}", text(&early));
    setup
        .disks
        .snapshotter
        .delete_group(minutes(1), &id, &BTreeSet::new())
        .await
        .unwrap();
    assert!(groups(&setup).is_empty() && snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn concurrent_group_creations_share_polls() {
    let setup = Setup::new(&["--cut-delay=5s"]);
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..30 {
        let (one, two) = (setup.disk(&format!("a-{n}")).await, setup.disk(&format!("b-{n}")).await);
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
    let page = client(&setup.cloud).describe_snapshot_groups(minutes(1), &query).await;
    assert_eq!(page.unwrap().rows.len(), 30);
}
