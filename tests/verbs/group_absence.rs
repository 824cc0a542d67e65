//! Empty responses of reads and lost answers: snapshot groups.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::timeout;

use diskplugin::disk::FailureKind;
use diskplugin::model::Failure;

use crate::group::{group, groups, new_group, snapshots, two_disks};
use crate::kit::{Setup, minutes, seconds, text};
use crate::snapshot_absence::{assert_not_final, assert_unavailable, hide, show};
use crate::snapshot_ambiguity::{REFUSALS, lose, recover};

#[tokio::test(start_paused = true)]
async fn empty_responses_during_two_creations_take_one_group_that_is_returned_afterwards() {
    for hidden in [
        &["DescribeSnapshotGroups"][..],
        &["DescribeSnapshots"],
        &["DescribeSnapshotGroups", "DescribeSnapshots"],
    ] {
        for others in [0, 1] {
            let setup = Setup::new(&["--cut-delay=2s"]);
            let (one, two) = two_disks(&setup).await;
            for other in 0..others {
                group(
                    &setup.disks,
                    &new_group(&format!("other-{other}"), &[&one, &two]),
                )
                .await;
            }
            let new = new_group("group", &[&one, &two]);
            hide(&setup, hidden);
            for _ in 0..2 {
                let blind = setup
                    .disks
                    .snapshotter
                    .create_group(seconds(45), &new)
                    .await;
                assert_unavailable(&blind.unwrap_err());
                tokio::time::sleep(Duration::from_secs(45)).await;
            }
            let many = others + 1;
            assert_eq!(
                (groups(&setup).len(), snapshots(&setup).len()),
                (many, 2 * many)
            );
            show(&setup);
            let made = group(&setup.disks, &new).await;
            assert_eq!(
                (groups(&setup).len(), snapshots(&setup).len()),
                (many, 2 * many)
            );
            assert!(
                groups(&setup)
                    .iter()
                    .any(|row| row["id"] == made.id.as_str())
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_and_later_refusals_are_never_final_and_the_group_is_found() {
    for refusal in REFUSALS {
        for setup in [
            Setup::new(&["--cut-delay=1s"]),
            Setup::with_retries(&["--cut-delay=1s"]),
        ] {
            let (one, two) = two_disks(&setup).await;
            let new = new_group("group", &[&one, &two]);
            let (create, read) = ("CreateSnapshotGroup", "DescribeSnapshotGroups");
            lose(&setup, create, read, &json!("reset-after"), refusal);
            for _ in 0..3 {
                let unclear = setup
                    .disks
                    .snapshotter
                    .create_group(seconds(20), &new)
                    .await;
                assert_not_final(&unclear.unwrap_err());
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            recover(&setup, create, refusal);
            group(&setup.disks, &new).await;
            assert_eq!(
                (groups(&setup).len(), snapshots(&setup).len()),
                (1, 2),
                "{refusal:?}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_creation_of_a_group_is_ambiguous_too() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    let (one, two) = two_disks(&setup).await;
    let new = new_group("group", &[&one, &two]);
    let (create, read) = ("CreateSnapshotGroup", "DescribeSnapshotGroups");
    lose(&setup, create, read, &json!("hang"), REFUSALS[1]);
    let call = setup.disks.snapshotter.create_group(minutes(1), &new);
    assert!(timeout(Duration::from_secs(5), call).await.is_err());
    let unclear = setup
        .disks
        .snapshotter
        .create_group(seconds(20), &new)
        .await;
    assert_not_final(&unclear.unwrap_err());
    recover(&setup, create, REFUSALS[1]);
    group(&setup.disks, &new).await;
    assert_eq!(groups(&setup).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_reads_hide_is_neither_reported_deleted_nor_missing() {
    let setup = Setup::new(&[]);
    let (one, two) = two_disks(&setup).await;
    let made = group(&setup.disks, &new_group("group", &[&one, &two])).await;
    let disks = setup.restarted();
    hide(&setup, &["DescribeSnapshotGroups"]);
    let none = BTreeSet::new();
    let deleted = disks
        .snapshotter
        .delete_group(seconds(30), &made.id, &none)
        .await;
    let read = disks.snapshotter.get_group(seconds(30), &made.id, &none).await;
    for error in [deleted.unwrap_err(), read.unwrap_err()] {
        assert_eq!(
            error.failure_kind(),
            FailureKind::Unavailable,
            "{}",
            text(&error)
        );
        assert!(
            text(&error).contains("ecs:DescribeSnapshotGroups"),
            "{}",
            text(&error)
        );
    }
    // Its members are neither free to be deleted alone nor gone.
    let member = &made.snapshots[0].id;
    let refused = disks.snapshotter.delete(seconds(30), member).await;
    let refused = refused.unwrap_err();
    assert!(
        refused.failure() == Failure::SnapshotInGroup
            || refused.failure_kind() == FailureKind::Unavailable,
        "{}",
        text(&refused)
    );
    hide(&setup, &["DescribeSnapshots"]);
    assert_not_final(
        &disks
            .snapshotter
            .get_group(seconds(30), &made.id, &none)
            .await
            .unwrap_err(),
    );
    assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (1, 2));
    show(&setup);
    disks
        .snapshotter
        .delete_group(minutes(1), &made.id, &none)
        .await
        .unwrap();
    assert!(groups(&setup).is_empty() && snapshots(&setup).is_empty());
}
