//! Reads and lists disks and snapshots, the health of disks, and instance types.

use std::sync::Arc;

use ecs::Client;
use ecs::poll::Poller;

use super::Result;
use super::dependencies::Dependencies;
use super::evidence::Rows;
use super::journal::Journal;
use super::ownership::Owner;
use super::read::read_disk;
use crate::base::Deadline;
use crate::model::{Disk, DiskHealth, DiskId, Snapshot};

mod health;
mod instance_types;
mod list;
mod owned;
mod published;
mod tag_filter;

pub use health::{HealthIssue, Severity, UnhealthyVolume, health_issues};
pub use instance_types::{InstanceTypeCatalog, PartialResult};
pub use list::{Cursor, InvalidCursor};
use tag_filter::TagFilter;

#[derive(Debug)]
pub struct Inventory {
    ecs: Arc<Client>,
    disks: Arc<Rows<Disk>>,
    disk_health: Poller<DiskId, DiskHealth>,
    snapshots: Arc<Rows<Snapshot>>,
    owner: Owner,
    journal: Arc<Journal>,
    disk_filter: TagFilter,
    snapshot_filter: TagFilter,
}

impl Inventory {
    pub(super) fn new(shared: &Dependencies, disk_health: Poller<DiskId, DiskHealth>) -> Self {
        let shared = shared.clone();
        Self {
            ecs: shared.ecs,
            disks: shared.disks,
            disk_health,
            snapshots: shared.snapshots,
            owner: shared.owner,
            journal: shared.journal,
            disk_filter: TagFilter::default(),
            snapshot_filter: TagFilter::default(),
        }
    }

    /// Reads the disk, or returns [`super::Error::NoSuchDisk`] if it certainly does not exist.
    pub async fn disk(&self, deadline: Deadline, disk: &DiskId) -> Result<Disk> {
        read_disk(&self.disks, deadline, disk).await
    }
}
