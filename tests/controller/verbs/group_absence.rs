//! Snapshot groups while reads return empty responses, and after lost responses.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use diskplugin::disk::FailureKind;
use diskplugin::model::Failure;

use crate::verbs::kit::group::{create_group, groups, new_group, snapshots, two_disks};
use crate::verbs::kit::{Setup, minutes, seconds, text};
use crate::verbs::snapshot_absence::{assert_not_final, assert_unavailable, hide, show};
use crate::verbs::snapshot_ambiguity::{REJECTIONS, lose, recover};

#[tokio::test(start_paused = true)]
async fn two_creates_with_empty_responses_result_in_one_group_that_is_returned_later() {
    for hidden in [
        &["DescribeSnapshotGroups"][..],
        &["DescribeSnapshots"],
        &["DescribeSnapshotGroups", "DescribeSnapshots"],
    ] {
        for others in [0, 1] {
            let setup = Setup::new(&["--cut-delay=2s"]);
            let (one, two) = two_disks(&setup).await;
            for other in 0..others {
                create_group(&setup.disks, &new_group(&format!("other-{other}"), &[&one, &two])).await;
            }
            let new = new_group("group", &[&one, &two]);
            hide(&setup, hidden);
            for _ in 0..2 {
                let unavailable = setup.disks.snapshotter.create_group(seconds(45), &new).await;
                assert_unavailable(&unavailable.unwrap_err());
                tokio::time::sleep(Duration::from_secs(45)).await;
            }
            let total = others + 1;
            assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (total, 2 * total));
            show(&setup);
            let created = create_group(&setup.disks, &new).await;
            assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (total, 2 * total));
            assert!(groups(&setup).iter().any(|row| row["id"] == created.id.as_str()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn errors_after_a_lost_response_are_never_final_and_the_group_is_found() {
    for rejection in REJECTIONS {
        for setup in [
            Setup::new(&["--cut-delay=1s"]),
            Setup::without_canary(&["--cut-delay=1s"]),
        ] {
            let (one, two) = two_disks(&setup).await;
            let new = new_group("group", &[&one, &two]);
            let (create, read) = ("CreateSnapshotGroup", "DescribeSnapshotGroups");
            lose(&setup, create, read, &json!("reset-after"), rejection);
            for _ in 0..3 {
                let ambiguous = setup.disks.snapshotter.create_group(seconds(20), &new).await;
                assert_not_final(&ambiguous.unwrap_err());
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            recover(&setup, create, rejection);
            create_group(&setup.disks, &new).await;
            assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (1, 2), "{rejection:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_group_creation_is_ambiguous() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    let (one, two) = two_disks(&setup).await;
    let new = new_group("group", &[&one, &two]);
    let (create, read) = ("CreateSnapshotGroup", "DescribeSnapshotGroups");
    lose(&setup, create, read, &json!("hang"), REJECTIONS[1]);
    let call = setup.disks.snapshotter.create_group(minutes(1), &new);
    assert!(timeout(Duration::from_secs(5), call).await.is_err());
    let ambiguous = setup.disks.snapshotter.create_group(seconds(20), &new).await;
    assert_not_final(&ambiguous.unwrap_err());
    recover(&setup, create, REJECTIONS[1]);
    create_group(&setup.disks, &new).await;
    assert_eq!(groups(&setup).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hidden_group_is_reported_neither_as_deleted_nor_as_not_found() {
    let setup = Setup::new(&[]);
    let (one, two) = two_disks(&setup).await;
    let created = create_group(&setup.disks, &new_group("group", &[&one, &two])).await;
    let disks = setup.restarted();
    hide(&setup, &["DescribeSnapshotGroups"]);
    let none = BTreeSet::new();
    let deleted = disks.snapshotter.delete_group(seconds(30), &created.id, &none).await;
    let read = disks.snapshotter.get_group(seconds(30), &created.id, &none).await;
    for error in [deleted.unwrap_err(), read.unwrap_err()] {
        assert_eq!(error.failure_kind(), FailureKind::Unavailable, "{}", text(&error));
        assert!(text(&error).contains("ecs:DescribeSnapshotGroups"), "{}", text(&error));
    }
    // Its members are neither deleted individually nor reported as not found.
    let member = &created.snapshots[0].id;
    let rejected = disks.snapshotter.delete(seconds(30), member).await;
    let rejected = rejected.unwrap_err();
    assert!(
        rejected.failure() == Failure::SnapshotInGroup || rejected.failure_kind() == FailureKind::Unavailable,
        "{}",
        text(&rejected)
    );
    hide(&setup, &["DescribeSnapshots"]);
    assert_not_final(
        &disks
            .snapshotter
            .get_group(seconds(30), &created.id, &none)
            .await
            .unwrap_err(),
    );
    assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (1, 2));
    show(&setup);
    disks
        .snapshotter
        .delete_group(minutes(1), &created.id, &none)
        .await
        .unwrap();
    assert!(groups(&setup).is_empty() && snapshots(&setup).is_empty());
}
