//! Snapshots, and groups of snapshots taken at one instant.

use std::sync::Arc;

use super::create_once::Creator;
use super::journal::Journal;
use super::ownership::Owner;
use crate::base::Tasks;
use crate::cloud::Ecs;
use crate::cloud::view::Poller;
use crate::model::{Disk, DiskId, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId};

mod compare;
mod create;
mod delete;
mod group;
mod group_delete;

pub use create::{NewSnapshot, Purpose};
pub use group::{Group, NewGroup};

#[derive(Debug)]
pub struct Snapshotter {
    ecs: Arc<dyn Ecs>,
    disks: Arc<Poller<DiskId, Disk>>,
    owner: Owner,
    journal: Arc<Journal>,
    pub(super) creator: Creator<Snapshot>,
    groups: Creator<SnapshotGroup>,
}

impl Snapshotter {
    pub(super) fn new(
        ecs: Arc<dyn Ecs>,
        disks: Arc<Poller<DiskId, Disk>>,
        rows: Arc<Poller<SnapshotId, Snapshot>>,
        groups: Poller<SnapshotGroupId, SnapshotGroup>,
        owner: Owner,
        journal: Arc<Journal>,
        tasks: &Tasks,
    ) -> Self {
        let creator = Creator::new(Arc::clone(&ecs), owner.clone(), rows, tasks.clone());
        let groups = Arc::new(groups);
        let groups = Creator::new(Arc::clone(&ecs), owner.clone(), groups, tasks.clone());
        Self {
            ecs,
            disks,
            owner,
            journal,
            creator,
            groups,
        }
    }
}
