//! Deletion of snapshot groups, only as a whole.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;

use diskplugin::disk::FailureKind;
use diskplugin::model::Failure;

use crate::verbs::kit::create::retry;
use crate::verbs::kit::group::{create_group, groups, new_group, snapshot_ids, snapshots, two_disks};
use crate::verbs::kit::{Setup, minutes, text};

#[tokio::test(start_paused = true)]
async fn a_member_is_deleted_only_with_its_group_and_mismatching_members_are_rejected() {
    let setup = Setup::new(&["--stale=1s"]);
    let (one, two) = two_disks(&setup).await;
    let other_snapshot = setup.snapshot("other", &one).await;
    let created = create_group(&setup.disks, &new_group("group", &[&one, &two])).await;
    let member = &created.snapshots[0].id;
    let rejected = setup.disks.snapshotter.delete(minutes(1), member).await.unwrap_err();
    assert!(rejected.failure() == Failure::SnapshotInGroup, "{}", text(&rejected));
    assert_eq!(rejected.failure_kind(), FailureKind::InvalidArgument);
    assert!(text(&rejected).contains(created.id.as_str()), "{}", text(&rejected));
    let incomplete = BTreeSet::from([member.clone()]);
    let mut superset = snapshot_ids(&created);
    superset.insert(other_snapshot.clone());
    for members in [&incomplete, &superset] {
        let read = setup
            .disks
            .snapshotter
            .get_group(minutes(1), &created.id, members)
            .await
            .unwrap_err();
        let deleted = setup
            .disks
            .snapshotter
            .delete_group(minutes(1), &created.id, members)
            .await
            .unwrap_err();
        for rejected in [read, deleted] {
            assert!(
                rejected.failure() == Failure::GroupMembersMismatch,
                "{}",
                text(&rejected)
            );
        }
    }
    assert_eq!(snapshots(&setup).len(), 3);
    for _ in 0..2 {
        setup
            .disks
            .snapshotter
            .delete_group(minutes(1), &created.id, &snapshot_ids(&created))
            .await
            .unwrap();
    }
    assert_eq!((groups(&setup).len(), snapshots(&setup).len()), (0, 1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    // After the group is deleted, a leftover member can be deleted individually.
    setup.disks.snapshotter.delete(minutes(1), member).await.unwrap();
    let not_found = setup
        .disks
        .snapshotter
        .get_group(minutes(1), &created.id, &BTreeSet::new())
        .await
        .unwrap_err();
    assert!(not_found.failure() == Failure::NoSuchGroup, "{not_found:?}");
}

#[tokio::test(start_paused = true)]
async fn deletion_fails_and_names_the_members_that_the_cloud_kept() {
    let setup = Setup::new(&[]);
    let (one, two) = two_disks(&setup).await;
    let created = create_group(&setup.disks, &new_group("group", &[&one, &two])).await;
    let kept = created.snapshots[1].id.to_string();
    setup.configure(&json!({"holds": {"images": [kept]}}));
    for _ in 0..2 {
        let failed = setup
            .disks
            .snapshotter
            .delete_group(minutes(1), &created.id, &snapshot_ids(&created))
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
        .delete_group(minutes(1), &created.id, &snapshot_ids(&created))
        .await
        .unwrap();
    assert!(groups(&setup).is_empty() && snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn deleting_a_nonexistent_group_succeeds_and_the_group_of_another_cluster_is_rejected() {
    for flags in [&[][..], &["--missing-is-error"]] {
        let setup = Setup::new(flags);
        let none = "ssg-none".parse().unwrap();
        let delete = async |members: BTreeSet<_>| {
            let service = &setup.disks.snapshotter;
            service.delete_group(minutes(1), &none, &members).await
        };
        // An empty response proves absence only if the snapshots of the group are known to be deleted.
        let unproven = delete(BTreeSet::new()).await.unwrap_err();
        assert_eq!(unproven.failure_kind(), FailureKind::Unavailable, "{}", text(&unproven));
        let (one, two) = two_disks(&setup).await;
        let canary = setup.snapshot("canary", &one).await;
        let members = BTreeSet::from(["s-none".parse().unwrap()]);
        retry(100, async || delete(members.clone()).await).await.unwrap();
        setup.disks.snapshotter.delete(minutes(1), &canary).await.unwrap();
        let foreign = create_group(&setup.other_cluster(), &new_group("group", &[&one, &two])).await;
        retry(100, async || delete(BTreeSet::new()).await).await.unwrap();
        let rejected = setup
            .disks
            .snapshotter
            .delete_group(minutes(1), &foreign.id, &BTreeSet::new())
            .await;
        assert!(
            matches!(&rejected, Err(error) if error.failure() == Failure::NotOwned),
            "{rejected:?}"
        );
        assert_eq!(groups(&setup).len(), 1);
    }
}
