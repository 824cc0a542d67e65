//! Snapshot groups of two disks.

use super::*;

pub(crate) fn new_group(name: &str, sources: &[&DiskId]) -> NewGroupSnapshot {
    NewGroupSnapshot {
        name: name.to_owned(),
        sources: sources.iter().map(|id| (*id).clone()).collect(),
        resource_group: None,
        tags: Tags::new(),
    }
}

pub(crate) fn snapshot_ids(group: &GroupSnapshot) -> BTreeSet<SnapshotId> {
    group.snapshots.iter().map(|row| row.id.clone()).collect()
}

pub(crate) async fn two_disks(setup: &Setup) -> (DiskId, DiskId) {
    (setup.disk("pvc-1").await, setup.disk("pvc-2").await)
}

/// A request for a group of two new disks.
pub(crate) async fn group_of_two(setup: &Setup) -> NewGroupSnapshot {
    let (one, two) = two_disks(setup).await;
    new_group("group", &[&one, &two])
}

/// The ID of the first group, which no call has returned.
pub(crate) fn first_group(setup: &Setup) -> SnapshotGroupId {
    setup.groups()[0]["id"].as_str().unwrap().parse().unwrap()
}

/// Asserts the number of groups and of snapshots.
#[track_caller]
pub(crate) fn assert_groups(setup: &Setup, groups: usize, snapshots: usize) {
    assert_eq!((setup.groups().len(), setup.snapshots().len()), (groups, snapshots));
}
