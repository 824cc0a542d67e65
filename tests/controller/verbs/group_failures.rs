//! Snapshot groups that fail, and groups that the cloud rejects.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn a_group_that_fails_is_reported_deleted_and_replaced() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--cut-delay=2s", stale]);
        let (one, two) = two_disks(&setup).await;
        let new = new_group("group", &[&one, &two]);
        setup.fault("CreateSnapshotGroup", &json!("fails-later"));
        let failed = setup.try_group(minutes(1), &new).await.unwrap_err();
        // The failed group is deleted, and the next call creates another.
        assert_error(&failed, FailureKind::Internal, &[&format!("of disk {one}")]);
        assert_groups(&setup, 0, 0);
        let replaced = setup.create_group(&new).await;
        assert_groups(&setup, 1, 2);
        assert_eq!(setup.restarted().create_group(&new).await.id, replaced.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_that_is_being_created_or_has_failed_is_reported_and_can_be_deleted() {
    for (fails, kind) in [(false, FailureKind::Aborted), (true, FailureKind::Internal)] {
        let setup = Setup::new(&[if fails { "--cut-delay=10s" } else { "--cut-delay=30s" }]);
        if fails {
            setup.fault("CreateSnapshotGroup", &json!("fails-later"));
        }
        let new = group_of_two(&setup).await;
        let late = setup.try_group(seconds(5), &new).await.unwrap_err();
        assert_error(&late, FailureKind::DeadlineExceeded, &[]);
        sleep(10).await;
        let (id, none) = (first_group(&setup), BTreeSet::new());
        assert_error(&setup.get_group(&id, &none).await.unwrap_err(), kind, &[]);
        setup.delete_group(&id, &none).await.unwrap();
        assert_groups(&setup, 0, 0);
    }
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
    for (other, reason) in [(&far, "several zones"), (&old, "ESSD family"), (&huge, "32 TiB")] {
        let new = new_group(reason, &[&near, other]);
        for _ in 0..2 {
            let rejected = setup.try_group(minutes(1), &new).await.unwrap_err();
            assert_error(&rejected, FailureKind::FailedPrecondition, &[reason]);
        }
    }
    let mut many = Vec::new();
    for n in 0..17 {
        many.push(create_disk(&format!("many-{n}"), "a", Category::CloudEssd, 20).await);
    }
    setup.cloud.clear_calls();
    let new = new_group("many", &many.iter().collect::<Vec<_>>());
    let rejected = setup.try_group(minutes(1), &new).await.unwrap_err();
    assert_names(&rejected, &["more than 16"]);
    assert_eq!(setup.calls("CreateSnapshotGroup"), 0);
    let none: DiskId = "d-none".parse().unwrap();
    let new = new_group("none", &[&near, &none]);
    let rejected = setup.try_group(minutes(1), &new).await.unwrap_err();
    let is_missing = matches!(&rejected, Error::NoSuchDisk { disk } if *disk == none);
    assert!(is_missing, "{rejected:?}");
    let rejected = setup
        .try_snapshot(minutes(1), &new_snapshot("none", &none))
        .await
        .unwrap_err();
    assert!(matches!(rejected, Error::NoSuchDisk { .. }), "{rejected:?}");
    assert!(setup.groups().is_empty());
    // Sixteen disks are the maximum and succeed.
    let fit = new_group("fit", &many[..16].iter().collect::<Vec<_>>());
    setup.create_group(&fit).await;
}

#[tokio::test(start_paused = true)]
async fn a_group_of_never_attached_disks_is_rejected_with_advice() {
    let setup = Setup::new(&["--never-attached"]);
    let new = group_of_two(&setup).await;
    let rejected = setup.try_group(minutes(1), &new).await.unwrap_err();
    assert_error(&rejected, FailureKind::FailedPrecondition, &["start a pod"]);
}

#[tokio::test(start_paused = true)]
async fn a_returned_group_is_kept_if_one_of_its_snapshots_fails_later() {
    let setup = Setup::new(&["--snapshot-delay=10m"]);
    let new = group_of_two(&setup).await;
    let group = setup.create_group(&new).await;
    setup.cloud.fail_snapshot(&group.snapshots[0].id);
    for process in [setup.clone(), setup.restarted()] {
        let failed = process.try_group(minutes(1), &new).await.unwrap_err();
        assert_failure(&failed, Failure::GroupFailed);
        assert_names(&failed, &["delete it"]);
        assert_groups(&setup, 1, 2);
    }
}
