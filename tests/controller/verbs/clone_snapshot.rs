//! The temporary snapshot of a clone: when it is deleted, and what is kept.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use diskplugin::model::{DiskId, Snapshot};

use crate::verbs::clone::{cloned, snapshots, used_disk};
use crate::verbs::kit::{Setup, minutes, new_disk, new_snapshot};

#[tokio::test(start_paused = true)]
async fn the_snapshot_of_an_interrupted_clone_is_deleted_with_the_clone_or_after_a_day() {
    let interrupt = async |setup: &Setup, source: &DiskId| {
        let (error, new) = (json!("internal-error"), new_disk("pvc-1"));
        let clone = setup.disks.provisioner.create_clone(minutes(1), &new, source);
        setup.lose("DeleteSnapshot", &error, clone).await;
        assert_eq!(snapshots(setup).len(), 1);
        let rows = setup.rows();
        let clone = rows.iter().find(|row| row["id"] != source.as_str()).unwrap();
        clone["id"].as_str().unwrap().parse::<DiskId>().unwrap()
    };
    let setup = Setup::new(&[]);
    let source = used_disk(&setup, "source").await;
    let clone = interrupt(&setup, &source).await;
    // ListSnapshots does not return the temporary snapshot.
    let listed = setup
        .disks
        .inventory
        .list_snapshots(minutes(1), None, None, Snapshot::clone);
    assert!(listed.await.unwrap().is_empty());
    setup.delete(&clone).await;
    assert!(snapshots(&setup).is_empty());

    let setup = Setup::new(&[]);
    let source = used_disk(&setup, "source").await;
    interrupt(&setup, &source).await;
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert!(snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_clone_succeeds_without_the_permission_to_delete_its_snapshot() {
    let setup = Setup::new(&[]);
    let source = used_disk(&setup, "source").await;
    let denied = json!({"code": {"status": 403, "code": "Forbidden.RAM"}});
    setup.faults("DeleteSnapshot", 10_000, &denied);
    let disk = cloned(&setup.disks, &new_disk("pvc-1"), &source).await;
    for disks in [Arc::clone(&setup.disks), setup.restarted()] {
        tokio::time::sleep(Duration::from_secs(4)).await;
        let again = cloned(&disks, &new_disk("pvc-1"), &source).await;
        assert_eq!(again.id, disk.id);
    }
    assert_eq!((snapshots(&setup).len(), setup.calls("CreateSnapshot")), (1, 1));
    // The snapshot has a retention.
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert!(snapshots(&setup).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_user_snapshot_with_the_name_of_the_clone_is_kept() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    let source = used_disk(&setup, "source").await;
    let requested = setup.snapshot("same", &source).await;
    cloned(&setup.disks, &new_disk("same"), &source).await;
    assert_eq!(snapshots(&setup)[0]["id"], requested.as_str());
    let again = setup
        .disks
        .snapshotter
        .create(minutes(1), &new_snapshot("same", &source))
        .await;
    assert_eq!(again.unwrap().id, requested);
}
