//! Reading what there is: disks, snapshots, their health, and instance types.

use std::sync::Arc;

use super::Result;
use super::dependencies::Dependencies;
use super::journal::Journal;
use super::ownership::Owner;
use super::read::read_disk;
use crate::base::Deadline;
use crate::cloud::EcsApi;
use crate::cloud::view::Poller;
use crate::model::{Disk, DiskHealth, DiskId, Snapshot, SnapshotId};

mod health;
mod instance_types;
mod list;
mod tag_filter;

pub use health::{HealthIssue, Severity, UnhealthyVolume, health_issues};
pub use instance_types::{InstanceTypeCatalog, Partial};
pub use list::{Cursor, InvalidCursor};
use tag_filter::TruncatedFilter;

#[derive(Debug)]
pub struct Inventory {
    ecs: Arc<dyn EcsApi>,
    disks: Arc<Poller<DiskId, Disk>>,
    healths: Poller<DiskId, DiskHealth>,
    snapshots: Arc<Poller<SnapshotId, Snapshot>>,
    owner: Owner,
    journal: Arc<Journal>,
    wide_disks: TruncatedFilter,
    wide_snapshots: TruncatedFilter,
}

impl Inventory {
    pub(super) fn new(shared: &Dependencies, healths: Poller<DiskId, DiskHealth>) -> Self {
        let shared = shared.clone();
        Self {
            ecs: shared.ecs,
            disks: shared.disks,
            healths,
            snapshots: shared.snapshots,
            owner: shared.owner,
            journal: shared.journal,
            wide_disks: TruncatedFilter::default(),
            wide_snapshots: TruncatedFilter::default(),
        }
    }

    /// The disk as it stands.
    ///
    /// # Errors
    /// [`super::Error::NoSuchDisk`] once it can be believed that there is none.
    pub async fn disk(&self, deadline: Deadline, disk: &DiskId) -> Result<Disk> {
        read_disk(&self.disks, deadline, disk).await
    }
}
