//! Snapshots and snapshot groups.

use std::sync::Arc;

use ecs::Client;

use super::dependencies::Dependencies;
use super::evidence::{Creator, Rows};
use super::journal::Journal;
use super::ownership::Owner;
use crate::model::{Disk, Snapshot, SnapshotGroup};

mod compare;
mod create;
mod delete;
mod group;
mod group_delete;

pub(super) use create::failed;
pub use create::{NewSnapshot, SnapshotPurpose};
pub use group::{GroupSnapshot, NewGroupSnapshot};

#[derive(Debug)]
pub struct Snapshotter {
    ecs: Arc<Client>,
    disks: Arc<Rows<Disk>>,
    owner: Owner,
    journal: Arc<Journal>,
    pub(super) creator: Creator<Snapshot>,
    groups: Creator<SnapshotGroup>,
}

impl Snapshotter {
    pub(super) fn new(shared: &Dependencies, rows: Arc<Rows<SnapshotGroup>>) -> Self {
        let snapshots = Arc::clone(&shared.snapshots);
        Self {
            creator: Creator::new(shared, snapshots),
            groups: Creator::new(shared, rows),
            ecs: Arc::clone(&shared.ecs),
            disks: Arc::clone(&shared.disks),
            owner: shared.owner.clone(),
            journal: Arc::clone(&shared.journal),
        }
    }
}
