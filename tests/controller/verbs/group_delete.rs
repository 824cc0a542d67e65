//! Deletion of snapshot groups, only as a whole.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn a_member_is_deleted_only_with_its_group_and_mismatching_members_are_rejected() {
    let setup = Setup::new(&["--stale=1s"]);
    let (one, two) = two_disks(&setup).await;
    let other_snapshot = setup.snapshot("other", &one).await;
    let created = setup.create_group(&new_group("group", &[&one, &two])).await;
    let member = &created.snapshots[0].id;
    let rejected = setup.try_delete_snapshot(minutes(1), member).await.unwrap_err();
    assert_failure(&rejected, Failure::SnapshotInGroup);
    assert_error(&rejected, FailureKind::InvalidArgument, &[created.id.as_str()]);
    let incomplete = BTreeSet::from([member.clone()]);
    let mut superset = snapshot_ids(&created);
    superset.insert(other_snapshot.clone());
    for members in [&incomplete, &superset] {
        let read = setup.get_group(&created.id, members).await.unwrap_err();
        let deleted = setup.delete_group(&created.id, members).await.unwrap_err();
        for rejected in [read, deleted] {
            assert_failure(&rejected, Failure::GroupMembersMismatch);
        }
    }
    assert_eq!(setup.snapshots().len(), 3);
    for _ in 0..2 {
        setup.delete_group(&created.id, &snapshot_ids(&created)).await.unwrap();
    }
    assert_groups(&setup, 0, 1);
    sleep(1).await;
    // After the group is deleted, a leftover member can be deleted individually.
    setup.try_delete_snapshot(minutes(1), member).await.unwrap();
    let not_found = setup.get_group(&created.id, &BTreeSet::new()).await.unwrap_err();
    assert_failure(&not_found, Failure::NoSuchGroup);
}

#[tokio::test(start_paused = true)]
async fn deletion_fails_and_names_the_members_that_the_cloud_kept() {
    let setup = Setup::new(&[]);
    let (one, two) = two_disks(&setup).await;
    let created = setup.create_group(&new_group("group", &[&one, &two])).await;
    let members = snapshot_ids(&created);
    let kept = created.snapshots[1].id.to_string();
    setup.configure(&json!({"holds": {"images": [kept]}}));
    for _ in 0..2 {
        let failed = setup.delete_group(&created.id, &members).await.unwrap_err();
        let parts = [kept.as_str(), "SnapshotCreatedImage", "release or delete"];
        assert_error(&failed, FailureKind::FailedPrecondition, &parts);
        assert_groups(&setup, 1, 1);
    }
    setup.configure(&json!({"holds": {"images": []}}));
    setup.delete_group(&created.id, &members).await.unwrap();
    assert_groups(&setup, 0, 0);
}

#[tokio::test(start_paused = true)]
async fn deleting_a_nonexistent_group_succeeds_and_the_group_of_another_cluster_is_rejected() {
    for flags in [&[][..], &["--missing-is-error"]] {
        let setup = Setup::new(flags);
        let none = "ssg-none".parse().unwrap();
        let delete = async |members: BTreeSet<_>| setup.delete_group(&none, &members).await;
        // An empty response proves absence only if it is proven that the snapshots of the group are deleted.
        let unproven = delete(BTreeSet::new()).await.unwrap_err();
        assert_error(&unproven, FailureKind::Unavailable, &[]);
        let (one, two) = two_disks(&setup).await;
        let canary = setup.snapshot("canary", &one).await;
        let members = BTreeSet::from(["s-none".parse().unwrap()]);
        retry(100, async || delete(members.clone()).await).await.unwrap();
        setup.try_delete_snapshot(minutes(1), &canary).await.unwrap();
        let new = new_group("group", &[&one, &two]);
        let foreign = setup.other_cluster().create_group(&new).await;
        retry(100, async || delete(BTreeSet::new()).await).await.unwrap();
        let rejected = setup.delete_group(&foreign.id, &BTreeSet::new()).await;
        assert_failure(&rejected.unwrap_err(), Failure::NotOwned);
        assert_eq!(setup.groups().len(), 1);
    }
}
