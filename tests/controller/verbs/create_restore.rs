//! Creating disks from snapshots.

use crate::verbs::kit::*;

fn from_snapshot(snapshot: &SnapshotId) -> NewDisk {
    restored("pvc-1", snapshot)
}

async fn snapshot_of_50_gib(setup: &Setup) -> (DiskId, SnapshotId) {
    let large = sized("source", gib(50));
    let source = setup.create(&large).await.id;
    let snapshot = setup.snapshot("snap", &source).await;
    (source, snapshot)
}

#[tokio::test(start_paused = true)]
async fn a_request_smaller_than_its_snapshot_gets_the_size_of_the_snapshot() {
    let setup = Setup::new(&[]);
    let (_, snapshot) = snapshot_of_50_gib(&setup).await;
    let new = from_snapshot(&snapshot);
    let disk = setup.create(&new).await;
    assert_eq!((disk.size.0, disk.source_snapshot.clone()), (50, Some(snapshot)));
    let again = setup.restarted().create(&new).await;
    assert_eq!(again.id, disk.id);
}

#[tokio::test(start_paused = true)]
async fn a_limit_below_the_snapshot_size_is_out_of_range() {
    let setup = Setup::new(&[]);
    let (source, snapshot) = snapshot_of_50_gib(&setup).await;
    let new = NewDisk {
        size: between(20, 49),
        ..from_snapshot(&snapshot)
    };
    let rejected = setup.try_create(minutes(1), &new).await.unwrap_err();
    assert!(matches!(rejected, Error::OutOfRange { .. }), "{rejected:?}");
    assert_names(&rejected, &[&format!("snapshot {snapshot} needs 50 GiB")]);
    assert_eq!(setup.only_disk(), source);
}

#[tokio::test(start_paused = true)]
async fn create_from_an_incomplete_snapshot_fails_without_creating_a_disk() {
    let setup = Setup::new(&["--cut-delay=30s"]);
    let source = setup.disk("source").await;
    let pending = setup.try_snapshot(seconds(5), &new_snapshot("snap", &source)).await;
    assert_eq!(pending.unwrap_err().failure_kind(), FailureKind::DeadlineExceeded);
    let id = setup.cloud.state()["snapshots"][0]["id"].as_str().unwrap().to_owned();
    let new = from_snapshot(&id.parse().unwrap());
    let rejected = setup.try_create(minutes(1), &new).await.unwrap_err();
    assert_error(&rejected, FailureKind::FailedPrecondition, &[&id]);
    assert_eq!(setup.only_disk(), source);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_reported_ready_is_found_and_restored_with_stale_reads() {
    for delay in ["--cut-delay=0s", "--cut-delay=3s"] {
        for seed in seeds(20) {
            let setup = Setup::new(&["--stale=0s..2s", "--stale-jumping", &seed, delay]);
            let source = setup.disk("source").await;
            let snapshot = setup.snapshot("snap", &source).await;
            expect("get", setup.disks.snapshotter.get(minutes(1), &snapshot).await);
            setup.create(&from_snapshot(&snapshot)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_disk_of_a_lost_response_is_found_after_its_snapshot_is_deleted() {
    let setup = Setup::new(&[]);
    let source = setup.disk("source").await;
    let snapshot = setup.snapshot("snap", &source).await;
    let new = from_snapshot(&snapshot);
    setup.lose_create(&json!("reset-after"), &new).await;
    setup.try_delete_snapshot(minutes(1), &snapshot).await.unwrap();
    let disk = setup.restarted().create(&new).await;
    assert_eq!(disk.source_snapshot, Some(snapshot));
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_restored_to_another_zone_category_and_size() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&[stale]);
        let source = setup.disk("source").await;
        let snapshot = setup.snapshot("snap", &source).await;
        setup.delete(&source).await;
        let new = NewDisk {
            zones: vec![zone("b").into()],
            categories: vec![Category::CloudSsd],
            size: gib(50),
            ..from_snapshot(&snapshot)
        };
        let disk = setup.create(&new).await;
        assert_eq!((disk.zone, disk.size.0), (Some(zone("b")), 50));
        assert_eq!(disk.category, Category::CloudSsd);
        assert_eq!(disk.source_snapshot, Some(snapshot));
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_from_an_encrypted_snapshot_is_encrypted_by_default() {
    let setup = Setup::new(&[]);
    let encrypted = NewDisk {
        encrypted: true,
        ..new_disk("source")
    };
    let source = setup.create(&encrypted).await;
    let snapshot = setup.snapshot("snap", &source.id).await;
    let new = from_snapshot(&snapshot);
    let disk = setup.create(&new).await;
    assert!(disk.encrypted);
    let again = setup.restarted().create(&new).await;
    assert_eq!(again.id, disk.id);
}

#[tokio::test(start_paused = true)]
async fn create_from_an_archived_snapshot_reports_the_cloud_code() {
    let setup = Setup::new(&[]);
    let source = setup.disk("source").await;
    let snapshot = setup.snapshot("snap", &source).await;
    setup.configure(&json!({"holds": {"archived": [snapshot.as_str()]}}));
    let new = from_snapshot(&snapshot);
    let rejected = setup.try_create(minutes(1), &new).await.unwrap_err();
    assert_names(&rejected, &["InvalidSnapshotId.NotReady"]);
    assert_eq!(setup.only_disk(), source);
}
