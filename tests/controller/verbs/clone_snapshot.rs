//! The temporary snapshot of a clone: when it is deleted, and which snapshots are kept.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn the_snapshot_of_an_interrupted_clone_is_deleted_with_the_clone_or_after_a_day() {
    let interrupt = async |setup: &Setup, source: &DiskId| {
        let (error, new) = (json!("internal-error"), new_disk("pvc-1"));
        let clone = setup.try_clone(minutes(1), &new, source);
        setup.lose("DeleteSnapshot", &error, clone).await;
        assert_eq!(setup.snapshots().len(), 1);
        setup.other_disk(source)
    };
    let setup = Setup::new(&[]);
    let source = setup.attached("source").await;
    let clone = interrupt(&setup, &source).await;
    // ListSnapshots does not return the temporary snapshot.
    let listed = setup.list_snapshots(None, None);
    assert!(listed.await.unwrap().is_empty());
    setup.delete(&clone).await;
    assert!(setup.snapshots().is_empty());

    let setup = Setup::new(&[]);
    let source = setup.attached("source").await;
    interrupt(&setup, &source).await;
    sleep(24 * 3600).await;
    assert!(setup.snapshots().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_clone_succeeds_without_the_permission_to_delete_its_snapshot() {
    let setup = Setup::new(&[]);
    let source = setup.attached("source").await;
    setup.faults("DeleteSnapshot", 10_000, &error_code(403, "Forbidden.RAM"));
    let disk = setup.clone_disk(&new_disk("pvc-1"), &source).await;
    for process in [setup.clone(), setup.restarted()] {
        sleep(4).await;
        let again = process.clone_disk(&new_disk("pvc-1"), &source).await;
        assert_eq!(again.id, disk.id);
    }
    assert_eq!((setup.snapshots().len(), setup.calls("CreateSnapshot")), (1, 1));
    // The snapshot has a retention.
    sleep(24 * 3600).await;
    assert!(setup.snapshots().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_user_snapshot_with_the_name_of_the_clone_is_kept() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    let source = setup.attached("source").await;
    let requested = setup.snapshot("same", &source).await;
    setup.clone_disk(&new_disk("same"), &source).await;
    assert_eq!(setup.snapshots()[0]["id"], requested.as_str());
    let again = setup.create_snapshot(&new_snapshot("same", &source)).await;
    assert_eq!(again.id, requested);
}
