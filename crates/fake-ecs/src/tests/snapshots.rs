//! The lifecycle of a snapshot.

use serde_json::json;

use super::kit::{NODE, Sandbox, essd, legacy, region};
use crate::action::Action;
use crate::params::Params;

#[test]
fn an_essd_snapshot_is_usable_once_captured_and_a_legacy_one_once_complete() {
    for (disk, usable_at_cut) in [(essd(), true), (legacy(), false)] {
        let mut sandbox = Sandbox::new(&["--cut-delay=2s", "--snapshot-delay=10s"]);
        let disk = sandbox.create(disk);
        let id = sandbox.snapshot(&disk);
        let row = |sandbox: &Sandbox| sandbox.world.snapshots.get(&id).unwrap().clone();
        assert_eq!(row(&sandbox).cut, None);
        sandbox.pass(2);
        assert!(row(&sandbox).cut.is_some());
        assert_eq!(row(&sandbox).status(), "progressing");
        assert_eq!(row(&sandbox).available(), usable_at_cut);
        assert_eq!(row(&sandbox).progress(sandbox.world.now), 20);
        sandbox.pass(8);
        assert_eq!(row(&sandbox).status(), "accomplished");
        assert!(row(&sandbox).available());
    }
}

#[test]
fn a_disk_is_created_only_from_a_usable_snapshot_and_not_smaller() {
    let mut sandbox = Sandbox::new(&["--snapshot-delay=10s"]);
    let source = sandbox.create(legacy().with("Size", "40"));
    let snapshot = sandbox.snapshot(&source);
    let from = |size: &str| legacy().with("SnapshotId", &snapshot).with("Size", size);
    let outcome = sandbox.outcome(Action::CreateDisk, from("40"));
    assert_eq!(outcome, "403 InvalidSnapshotId.NotReady");
    sandbox.pass(10);
    let outcome = sandbox.outcome(Action::CreateDisk, from("39"));
    assert_eq!(outcome, "403 InvalidDiskSize.TooSmall");
    assert_eq!(sandbox.outcome(Action::CreateDisk, from("40")), "ok");
}

#[test]
fn a_disk_that_is_loading_from_its_snapshot_cannot_be_deleted() {
    let mut sandbox = Sandbox::new(&["--load-delay=10s"]);
    let source = sandbox.create(essd());
    let snapshot = sandbox.snapshot(&source);
    let disk = sandbox.create(essd().with("SnapshotId", snapshot));
    assert_eq!(sandbox.status(&disk), "Available");
    assert_eq!(sandbox.delete(&disk), "403 IncorrectDiskStatus.Initializing");
    sandbox.pass(10);
    assert_eq!(sandbox.delete(&disk), "ok");
}

#[test]
fn deleting_the_source_snapshot_of_a_disk_requires_force() {
    let mut sandbox = Sandbox::new(&[]);
    let source = sandbox.create(essd());
    let snapshot = sandbox.snapshot(&source);
    let disk = sandbox.create(essd().with("SnapshotId", &snapshot));
    let delete = || Params::default().with("SnapshotId", &snapshot);
    let rejected = sandbox.outcome(Action::DeleteSnapshot, delete());
    assert_eq!(rejected, "403 SnapshotCreatedDisk");
    let forced = delete().with("Force", "true");
    assert_eq!(sandbox.outcome(Action::DeleteSnapshot, forced), "ok");
    assert_eq!(sandbox.status(&disk), "Available");
}

#[test]
fn ten_snapshots_of_an_essd_can_be_in_progress() {
    let mut sandbox = Sandbox::new(&["--snapshot-delay=10s"]);
    let disk = sandbox.create(essd());
    for _ in 0..10 {
        sandbox.snapshot(&disk);
    }
    let params = Params::default().with("DiskId", disk);
    let rejected = sandbox.outcome(Action::CreateSnapshot, params);
    assert_eq!(rejected, "403 QuotaExceed.ConcurrentSnapshotQuota");
}

#[test]
fn deleting_a_progressing_snapshot_cancels_it() {
    let mut sandbox = Sandbox::new(&["--cut-delay=10s"]);
    let disk = sandbox.create(essd());
    let snapshot = sandbox.snapshot(&disk);
    assert_eq!(sandbox.delete(&disk), "403 DiskCreatingSnapshot");
    let params = Params::default().with("SnapshotId", snapshot);
    assert_eq!(sandbox.outcome(Action::DeleteSnapshot, params), "ok");
    assert_eq!(sandbox.delete(&disk), "ok");
}

#[test]
fn a_snapshot_can_fail() {
    let mut sandbox = Sandbox::new(&["--cut-delay=2s"]);
    sandbox.configure(&json!({"faults": [{"action": "CreateSnapshot", "kind": "fails-later"}]}));
    let disk = sandbox.create(essd());
    let id = sandbox.snapshot(&disk);
    sandbox.pass(2);
    let row = sandbox.world.snapshots.get(&id).unwrap();
    assert_eq!((row.status(), row.available()), ("failed", false));
}

#[test]
fn a_snapshot_outlives_its_disk() {
    let mut sandbox = Sandbox::new(&[]);
    let disk = sandbox.create(essd());
    let snapshot = sandbox.snapshot(&disk);
    assert_eq!(sandbox.delete(&disk), "ok");
    let query = region()
        .with("DiskId", disk)
        .with("SnapshotIds", format!("[{snapshot:?}]"));
    assert_eq!(sandbox.outcome(Action::DescribeSnapshots, query), "ok");
    assert!(sandbox.world.snapshots.get(&snapshot).is_some());
}

#[test]
fn snapshots_of_a_never_attached_disk_fail_only_if_configured() {
    let mut sandbox = Sandbox::new(&["--never-attached"]);
    let disk = sandbox.create(essd());
    let params = || Params::default().with("DiskId", &disk);
    let rejected = sandbox.outcome(Action::CreateSnapshot, params());
    assert_eq!(rejected, "403 IncorrectDiskStatus.NeverAttached");
    sandbox.attach(&disk, NODE);
    sandbox.detach(&disk, NODE);
    assert_eq!(sandbox.outcome(Action::CreateSnapshot, params()), "ok");
}
