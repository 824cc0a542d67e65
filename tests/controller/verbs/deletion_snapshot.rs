//! The snapshot before the deletion of a disk: exactly one, complete before the disk is deleted.

use crate::verbs::kit::*;

const FLAGS: [&str; 3] = ["--never-attached", "--cut-delay=1s", "--snapshot-delay=4s"];

/// A disk whose class requests a snapshot, which was attached and detached.
async fn used(setup: &Setup) -> DiskId {
    let created_for = [("pvc/name", "data"), ("pvc/namespace", "prod")];
    let created_for = created_for.map(|(key, name)| (format!("{}{key}", tag::CREATED_FOR), name.to_owned()));
    let new = NewDisk {
        deletion_snapshot_days: Some(7),
        created_for: created_for.into(),
        ..new_disk("pvc-1")
    };
    let disk = setup.create(&new).await.id;
    setup.attach(&disk, &node_one()).await;
    setup.detach(&disk, &node_one()).await;
    disk
}

/// Number of snapshots ever created.
fn created(setup: &Setup) -> usize {
    let calls = setup.cloud.calls().into_iter();
    let created = calls.filter(|call| call.action == "CreateSnapshot");
    created.filter_map(|call| call.created).collect::<BTreeSet<_>>().len()
}

#[tokio::test(start_paused = true)]
async fn repeated_deletions_take_one_snapshot_and_delete_the_disk_once_it_is_complete() {
    for stale in ["--stale=0s", "--stale=2s", "--stale=0s..2s"] {
        let setup = Setup::new(&["--never-attached", "--cut-delay=2s", "--snapshot-delay=100s", stale]);
        let disk = used(&setup).await;
        let mut attempts = 0;
        while let Err(error) = setup.try_delete(seconds(8), &disk).await {
            assert_not_final(&error);
            assert_names(&error, &[disk.as_str()]);
            assert_eq!((setup.calls("DeleteDisk"), created(&setup)), (0, 1));
            assert_eq!(setup.row(&disk)["status"], "Available");
            sleep(1).await;
            attempts += 1;
        }
        assert!(attempts >= 10, "{attempts}");
        assert!(setup.row(&disk).is_null());
        let row = setup.snapshots().remove(0);
        assert_eq!(
            (&row["stage"], &row["retention_days"]),
            (&json!("accomplished"), &json!(7))
        );
        for (key, value) in [
            (tag::CLUSTER, "test"),
            (tag::PURPOSE, "deletion"),
            ("kubernetes.io/created-for/pvc/name", "data"),
            ("kubernetes.io/created-for/pvc/namespace", "prod"),
            ("kubernetes.io/created-for/pv/name", "pvc-1"),
        ] {
            assert_eq!(row["tags"][key], value, "{row:#}");
        }
        assert_eq!((created(&setup), setup.calls("CreateSnapshot")), (1, 1));
        // The snapshot controller finds it by its ID, and a volume can be created from it, until its retention ends.
        let snapshot = setup.only_snapshot();
        assert_eq!(setup.list_snapshots(Some(&snapshot), None).await.unwrap().len(), 1);
        let restored = setup.create(&restored("pvc-2", &snapshot)).await;
        assert_eq!(restored.source_snapshot.as_ref(), Some(&snapshot));
        sleep(7 * 24 * 3600).await;
        assert!(setup.snapshots().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_results_in_one_snapshot() {
    for loss in ["reset-after", "internal-error-after", "reset-before", "truncated"] {
        for action in ["CreateSnapshot", "DeleteDisk"] {
            let setup = Setup::new(&FLAGS);
            let disk = used(&setup).await;
            let delete = setup.try_delete(seconds(10), &disk);
            setup.lose(action, &json!(loss), delete).await;
            let process = setup.restarted();
            for process in [&setup, &process] {
                let delete = async || process.try_delete(seconds(20), &disk).await;
                retry(200, delete).await.unwrap();
            }
            assert_eq!((created(&setup), setup.snapshots().len()), (1, 1), "{loss} {action}");
            assert!(setup.row(&disk).is_null());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_killed_at_any_time_leaves_one_snapshot_and_no_disk() {
    for instant in 0..60 {
        let (stale, seed) = (["--stale=0s", "--stale=2s"][instant % 2], format!("--seed={instant}"));
        let setup = Setup::new(&[&FLAGS[..], &["--latency=100ms", stale, &seed]].concat());
        let disk = used(&setup).await;
        let millis = 150 * u64::try_from(instant).unwrap();
        let killed = setup.try_delete(minutes(1), &disk);
        let _ = timeout(Duration::from_millis(millis), killed).await;
        let restarted = setup.restarted();
        let delete = async || restarted.try_delete(seconds(20), &disk).await;
        retry(200, delete).await.unwrap();
        assert_eq!((created(&setup), setup.snapshots().len()), (1, 1), "after {millis} ms");
        assert!(setup.row(&disk).is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn a_denied_snapshot_and_a_quota_keep_the_disk() {
    for (code, kind) in [
        ("Forbidden.RAM", FailureKind::PermissionDenied),
        ("QuotaExceed.SnapshotQuota", FailureKind::ResourceExhausted),
    ] {
        let setup = Setup::new(&FLAGS);
        let disk = used(&setup).await;
        setup.faults("CreateSnapshot", 1_000_000, &error_code(403, code));
        let says = format!("disk {disk} is not deleted");
        let parts = [&*says, "CreateSnapshot failed with", code, "RequestId"];
        for _ in 0..3 {
            let kept = setup.try_delete(minutes(1), &disk).await.unwrap_err();
            assert_error(&kept, kind, &parts);
        }
        let restarted = setup.restarted();
        let kept = restarted.try_delete(minutes(1), &disk).await.unwrap_err();
        assert_names(&kept, &parts);
        assert_eq!(setup.calls("DeleteDisk"), 0);
        assert_eq!(setup.row(&disk)["status"], "Available");
        setup.clear_faults();
        let delete = async || restarted.try_delete(seconds(20), &disk).await;
        retry(200, delete).await.unwrap();
        assert!(setup.row(&disk).is_null());
        assert_eq!((created(&setup), setup.snapshots().len()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_fails_is_replaced_before_the_disk_is_deleted() {
    for is_cut in [false, true] {
        let setup = Setup::new(&["--never-attached", "--cut-delay=1s", "--snapshot-delay=60s"]);
        let disk = used(&setup).await;
        let mut process = setup.clone();
        if is_cut {
            let late = setup.try_delete(seconds(10), &disk).await.unwrap_err();
            assert_unavailable(&late);
            setup.cloud.fail_snapshot(setup.only_snapshot());
            process = setup.restarted();
        } else {
            setup.fault("CreateSnapshot", &json!("fails-later"));
        }
        let failed = process.try_delete(seconds(20), &disk).await.unwrap_err();
        assert_failure(&failed, Failure::SnapshotFailed);
        assert!(setup.snapshots().is_empty());
        assert_eq!(setup.row(&disk)["status"], "Available");
        let delete = async || process.try_delete(seconds(20), &disk).await;
        retry(300, delete).await.unwrap();
        assert_eq!((created(&setup), setup.snapshots().len()), (2, 1));
        assert!(setup.row(&disk).is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_was_never_attached_and_one_without_the_tag_are_deleted_without_a_snapshot() {
    for is_restarted in [false, true] {
        let setup = Setup::new(&FLAGS);
        let process = if is_restarted { setup.restarted() } else { setup.clone() };
        let new = NewDisk {
            deletion_snapshot_days: Some(1),
            ..new_disk("pvc-1")
        };
        let disk = process.create(&new).await.id;
        process.delete(&disk).await;
        assert_eq!((setup.calls("CreateSnapshot"), created(&setup)), (1, 0));
        let disk = process.attached("pvc-2").await;
        process.detach(&disk, &node_one()).await;
        process.delete(&disk).await;
        assert_eq!(setup.calls("CreateSnapshot"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_was_used_after_an_unfinished_deletion_gets_another_snapshot() {
    for fault in [error_code(403, "Forbidden.RAM"), json!("reset-before")] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let setup = Setup::new(&[&FLAGS[..], &[stale]].concat());
            let disk = used(&setup).await;
            setup.faults("DeleteDisk", 1_000_000, &fault);
            setup.try_delete(seconds(20), &disk).await.unwrap_err();
            assert_eq!(created(&setup), 1);
            setup.clear_faults();
            setup.attach(&disk, &node_two()).await;
            setup.detach(&disk, &node_two()).await;
            setup.delete(&disk).await;
            let names = setup
                .snapshots()
                .into_iter()
                .map(|row| row["tags"][tag::DELETION_OF].to_string());
            assert_eq!(names.collect::<BTreeSet<_>>().len(), 2, "{fault} {stale}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_invalid_tag_keeps_the_disk_and_a_disk_of_another_cluster_gets_no_snapshot() {
    for (cluster, days) in [
        ("test", "soon"),
        ("test", "0"),
        ("test", "65537"),
        ("test", ""),
        ("other", "7"),
    ] {
        let setup = Setup::new(&[]);
        let tags = tags(&[(tag::CLUSTER, cluster), (tag::DELETION_SNAPSHOT_DAYS, days)]);
        let disk = setup.unmanaged_disk(tags).await;
        let kept = setup.try_delete(minutes(1), &disk).await.unwrap_err();
        if cluster == "test" {
            let value = format!("{days:?}; allowed: 1 to 65536 days");
            let parts = [disk.as_str(), tag::DELETION_SNAPSHOT_DAYS, &value];
            assert_error(&kept, FailureKind::FailedPrecondition, &parts);
        } else {
            assert_failure(&kept, Failure::NotOwned);
        }
        assert_eq!(setup.calls("DeleteDisk") + setup.calls("CreateSnapshot"), 0);
    }
}
