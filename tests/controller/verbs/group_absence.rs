//! Snapshot groups while reads return empty responses, and after lost responses.

use crate::verbs::kit::*;
use crate::verbs::snapshot_absence::hide;
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
                let other = new_group(&format!("other-{other}"), &[&one, &two]);
                setup.create_group(&other).await;
            }
            let new = new_group("group", &[&one, &two]);
            hide(&setup, hidden);
            for _ in 0..2 {
                let unavailable = setup.try_group(seconds(45), &new).await;
                assert_unavailable(&unavailable.unwrap_err());
                sleep(45).await;
            }
            let total = others + 1;
            assert_groups(&setup, total, 2 * total);
            setup.clear_faults();
            let created = setup.create_group(&new).await;
            assert_groups(&setup, total, 2 * total);
            assert!(setup.groups().iter().any(|row| row["id"] == created.id.as_str()));
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
            let new = group_of_two(&setup).await;
            let (create, read) = ("CreateSnapshotGroup", "DescribeSnapshotGroups");
            lose(&setup, create, read, &json!("reset-after"), rejection);
            for _ in 0..3 {
                let ambiguous = setup.try_group(seconds(20), &new).await;
                assert_not_final(&ambiguous.unwrap_err());
                sleep(60).await;
            }
            recover(&setup, create, rejection);
            setup.create_group(&new).await;
            assert_groups(&setup, 1, 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_group_creation_is_ambiguous() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    let new = group_of_two(&setup).await;
    let (create, read) = ("CreateSnapshotGroup", "DescribeSnapshotGroups");
    lose(&setup, create, read, &json!("hang"), REJECTIONS[1]);
    let call = setup.try_group(minutes(1), &new);
    assert!(timeout(Duration::from_secs(5), call).await.is_err());
    let ambiguous = setup.try_group(seconds(20), &new).await;
    assert_not_final(&ambiguous.unwrap_err());
    recover(&setup, create, REJECTIONS[1]);
    setup.create_group(&new).await;
    assert_eq!(setup.groups().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hidden_group_is_reported_neither_as_deleted_nor_as_not_found() {
    let setup = Setup::new(&[]);
    let (one, two) = two_disks(&setup).await;
    let created = setup.create_group(&new_group("group", &[&one, &two])).await;
    let restarted = setup.restarted();
    hide(&setup, &["DescribeSnapshotGroups"]);
    let none = BTreeSet::new();
    let deleted = restarted.delete_group(&created.id, &none).await;
    let read = restarted.get_group(&created.id, &none).await;
    for error in [deleted.unwrap_err(), read.unwrap_err()] {
        assert_error(&error, FailureKind::Unavailable, &["ecs:DescribeSnapshotGroups"]);
    }
    // Its members are neither deleted individually nor reported as not found.
    let member = &created.snapshots[0].id;
    let rejected = restarted.try_delete_snapshot(seconds(30), member).await.unwrap_err();
    let is_expected =
        rejected.failure() == Failure::SnapshotInGroup || rejected.failure_kind() == FailureKind::Unavailable;
    assert!(is_expected, "{}", text(&rejected));
    hide(&setup, &["DescribeSnapshots"]);
    assert_not_final(&restarted.get_group(&created.id, &none).await.unwrap_err());
    assert_groups(&setup, 1, 2);
    setup.clear_faults();
    restarted.delete_group(&created.id, &none).await.unwrap();
    assert_groups(&setup, 0, 0);
}
