//! Listing snapshots and reading them by ID.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn concurrent_reads_by_id_cost_one_call_per_100_snapshots() {
    let setup = Setup::new(&[]);
    let mut ids = Vec::new();
    for n in 0..150 {
        let disk = setup.disk(&format!("pvc-{n}")).await;
        ids.push(setup.snapshot(&format!("snap-{n}"), &disk).await);
    }
    setup.cloud.clear_calls();
    let read = |setup: Setup, (n, id): (usize, SnapshotId)| async move {
        if n % 2 == 0 {
            return setup.disks.snapshotter.get(minutes(1), &id).await.unwrap().id == id;
        }
        setup.list_snapshots(Some(&id), None).await.unwrap()[0].id == id
    };
    let found = setup.each(ids.into_iter().enumerate(), read).await;
    assert!(found.into_iter().all(|found| found));
    assert_eq!(setup.calls("DescribeSnapshots"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_before_its_cut_is_not_listed_and_a_read_by_id_is_aborted() {
    let setup = Setup::new(&["--cut-delay=30s"]);
    let disk = setup.disk("pvc-1").await;
    let new = new_snapshot("snap", &disk);
    setup.try_snapshot(seconds(5), &new).await.unwrap_err();
    let id = setup.only_snapshot();
    let listed = setup.list_snapshots(None, None);
    assert!(listed.await.unwrap().is_empty());
    let early = setup.disks.snapshotter.get(minutes(1), &id).await.unwrap_err();
    assert_error(&early, FailureKind::Aborted, &[]);
    sleep(30).await;
    assert_eq!(setup.disks.snapshotter.get(minutes(1), &id).await.unwrap().id, id);
}
