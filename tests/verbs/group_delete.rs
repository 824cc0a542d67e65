//! Deleting snapshot groups, as a whole only.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use diskplugin::disk::FailureKind;
use diskplugin::model::Failure;

use crate::group::{group, groups, ids, new_group, snapshots, two_disks};
use crate::kit::{Setup, minutes, text};

#[tokio::test(start_paused = true)]
async fn a_member_goes_only_with_its_group_and_other_members_are_refused() {
    let setup = Setup::new(&["--stale=1s"]);
    let (one, two) = two_disks(&setup).await;
    let alone = setup.snapshot("alone", &one).await;
    let made = group(&setup.disks, &new_group("group", &[&one, &two])).await;
    let member = &made.snapshots[0].id;
    let refused = setup
        .disks
        .snapshotter
        .delete(minutes(1), member)
        .await
        .unwrap_err();
    assert!(
        refused.failure() == Failure::SnapshotInGroup,
        "{}",
        text(&refused)
    );
    assert_eq!(refused.failure_kind(), FailureKind::InvalidArgument);
    assert!(
        text(&refused).contains(made.id.as_str()),
        "{}",
        text(&refused)
    );
    let one_of_two = BTreeSet::from([member.clone()]);
    let mut one_more = ids(&made);
    one_more.insert(alone.clone());
    for other in [&one_of_two, &one_more] {
        let look = setup
            .disks
            .snapshotter
            .get_group(minutes(1), &made.id, other)
            .await
            .unwrap_err();
        let gone = setup
            .disks
            .snapshotter
            .delete_group(minutes(1), &made.id, other)
            .await
            .unwrap_err();
        for refused in [look, gone] {
            assert!(
                refused.failure() == Failure::GroupMembersMismatch,
                "{}",
                text(&refused)
            );
        }
    }
    assert_eq!(snapshots(&setup).len(), 3);
    for _ in 0..2 {
        setup
            .disks
            .snapshotter
            .delete_group(minutes(1), &made.id, &ids(&made))
            .await
            .unwrap();
    }
    assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (0, 1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    // What is left of a group that is gone is nobody's but its own.
    setup
        .disks
        .snapshotter
        .delete(minutes(1), member)
        .await
        .unwrap();
    let gone = setup
        .disks
        .snapshotter
        .get_group(minutes(1), &made.id, &BTreeSet::new())
        .await
        .unwrap_err();
    assert!(gone.failure() == Failure::NoSuchGroup, "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn a_success_of_the_cloud_that_left_members_is_a_failure_that_names_them() {
    let setup = Setup::new(&[]);
    let (one, two) = two_disks(&setup).await;
    let made = group(&setup.disks, &new_group("group", &[&one, &two])).await;
    let kept = made.snapshots[1].id.to_string();
    setup.configure(&json!({"holds": {"images": [kept]}}));
    for _ in 0..2 {
        let failed = setup
            .disks
            .snapshotter
            .delete_group(minutes(1), &made.id, &ids(&made))
            .await;
        let failed = failed.unwrap_err();
        assert_eq!(failed.failure_kind(), FailureKind::FailedPrecondition);
        for part in [kept.as_str(), "SnapshotCreatedImage", "release or delete"] {
            assert!(text(&failed).contains(part), "{}", text(&failed));
        }
        assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (1, 1));
    }
    setup.configure(&json!({"holds": {"images": []}}));
    setup
        .disks
        .snapshotter
        .delete_group(minutes(1), &made.id, &ids(&made))
        .await
        .unwrap();
    assert!(groups(&setup).is_empty() && snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn deleting_what_is_not_there_is_success_and_somebody_elses_group_is_refused() {
    for flags in [&[][..], &["--missing-is-error"]] {
        let setup = Setup::new(flags);
        let none = "ssg-none".parse().unwrap();
        let delete = async |members: BTreeSet<_>| {
            let service = &setup.disks.snapshotter;
            service.delete_group(minutes(1), &none, &members).await
        };
        // No group shows that groups are visible at all, unless its snapshots are known to be gone.
        let unproven = delete(BTreeSet::new()).await.unwrap_err();
        assert_eq!(
            unproven.failure_kind(),
            FailureKind::Unavailable,
            "{}",
            text(&unproven)
        );
        delete(BTreeSet::from(["s-none".parse().unwrap()]))
            .await
            .unwrap();
        let (one, two) = two_disks(&setup).await;
        let theirs = group(&setup.other_cluster(), &new_group("group", &[&one, &two])).await;
        delete(BTreeSet::new()).await.unwrap();
        let refused = setup
            .disks
            .snapshotter
            .delete_group(minutes(1), &theirs.id, &BTreeSet::new())
            .await;
        assert!(
            matches!(&refused, Err(error) if error.failure() == Failure::NotOwned),
            "{refused:?}"
        );
        assert_eq!(groups(&setup).len(), 1);
    }
}
