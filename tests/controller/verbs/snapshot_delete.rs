//! Deletion of snapshots: idempotent, and only of owned snapshots.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn delete_is_idempotent_and_keeps_disks_created_from_the_snapshot() {
    for flags in [&[][..], &["--missing-is-error"], &["--stale=2s", "--missing-is-error"]] {
        let setup = Setup::new(flags);
        let disk = setup.disk("pvc-1").await;
        let snapshot = setup.snapshot("snap", &disk).await;
        let new = restored("pvc-2", &snapshot);
        setup.create(&new).await;
        for _ in 0..2 {
            setup.delete_snapshot(&snapshot).await;
        }
        let canary = setup.snapshot("canary", &disk).await;
        setup.delete_snapshot(&"s-none".parse().unwrap()).await;
        setup.delete_snapshot(&canary).await;
        assert_eq!((setup.snapshots().len(), setup.rows().len()), (0, 2));
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_snapshot_is_deleted_even_if_reads_do_not_return_it_yet() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    let new = new_snapshot("snap", &disk);
    setup.try_snapshot(seconds(1), &new).await.unwrap_err();
    let id = setup.only_snapshot();
    setup.delete_snapshot(&id).await;
    assert!(setup.snapshots().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_unmanaged_snapshot_is_not_deleted() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let request = snapshot_of(&disk, "external");
    let created = client(&setup.cloud).create_snapshot(minutes(1), &request).await;
    let snapshot = created.unwrap();
    let rejected = setup.try_delete_snapshot(minutes(1), &snapshot).await.unwrap_err();
    assert_failure(&rejected, Failure::NotOwned);
    assert_eq!(setup.only_snapshot(), snapshot);
}

#[tokio::test(start_paused = true)]
async fn deletion_of_a_snapshot_in_use_fails_with_the_reason_and_advice() {
    for (hold, code, advice) in [
        ("locked", "SnapshotIsLocked", "unlock it"),
        ("images", "SnapshotCreatedImage", "delete those disks or images"),
    ] {
        let setup = Setup::new(&[]);
        let disk = setup.disk("pvc-1").await;
        let id = setup.snapshot("snap", &disk).await;
        setup.configure(&json!({"holds": {hold: [id.as_str()]}}));
        let in_use = setup.try_delete_snapshot(minutes(1), &id).await.unwrap_err();
        assert_error(&in_use, FailureKind::FailedPrecondition, &[code, advice]);
        assert_eq!(setup.only_snapshot(), id);
        setup.configure(&json!({"holds": {hold: []}}));
        setup.delete_snapshot(&id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_can_be_deleted_during_its_creation_and_after_its_disk() {
    let setup = Setup::new(&["--snapshot-delay=10m"]);
    let disk = setup.disk("pvc-1").await;
    let id = setup.snapshot("snap", &disk).await;
    setup.delete_snapshot(&id).await;
    let id = setup.snapshot("other", &disk).await;
    setup.delete(&disk).await;
    let row = setup.disks.snapshotter.get(minutes(1), &id).await.unwrap();
    assert_eq!((row.source_disk, row.available), (Some(disk), true));
    setup.delete_snapshot(&id).await;
    assert!(setup.snapshots().is_empty());
}
