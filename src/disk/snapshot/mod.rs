//! Snapshots, and groups of snapshots taken at one instant.

use std::sync::Arc;

use super::attempts::AttemptHistory;
use super::journal::Journal;
use super::ownership::Owner;
use super::ownership_listing::OwnershipListing;
use crate::base::Tasks;
use crate::cloud::Ecs;
use crate::cloud::view::Poller;
use crate::model::{Disk, DiskId, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId};

mod compare;
mod create;
mod create_once;
mod delete;
mod find;
mod group;
mod group_delete;
mod key;
mod new_group;

pub use create::{NewSnapshot, Purpose};
pub use group::Group;
pub use new_group::NewGroup;

#[derive(Debug)]
pub struct Snapshotter {
    ecs: Arc<dyn Ecs>,
    disks: Arc<Poller<DiskId, Disk>>,
    pub(super) rows: Arc<Poller<SnapshotId, Snapshot>>,
    groups: Poller<SnapshotGroupId, SnapshotGroup>,
    owner: Owner,
    journal: Arc<Journal>,
    attempts: AttemptHistory,
    listing: OwnershipListing,
    group_listing: OwnershipListing,
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
        let listing =
            OwnershipListing::snapshots(Arc::clone(&ecs), &owner, tasks.clone(), key::of_snapshot);
        let group_listing =
            OwnershipListing::groups(Arc::clone(&ecs), &owner, tasks.clone(), key::of_group_tags);
        Self {
            ecs,
            disks,
            rows,
            groups,
            owner,
            journal,
            attempts: AttemptHistory::default(),
            listing,
            group_listing,
        }
    }
}
