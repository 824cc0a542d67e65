//! Orders of this process that the cloud has accepted, to bridge the lag of its reads.

use crate::model::{Disk, DiskId, Snapshot, SnapshotId};

mod attachments;
mod changes;
mod ephemeral;
mod existing;
mod resources;

pub(super) use attachments::{RecentAttachments, RecentDetachments};
pub(super) use changes::RecentChanges;
pub(super) use ephemeral::EphemeralDisks;
pub(super) use resources::{Known, RecentResources};

/// What this process did within the lag of reads.
#[derive(Debug, Default)]
pub(super) struct Journal {
    /// Disks created and deleted.
    pub(super) disks: RecentResources<DiskId, Disk>,
    /// Snapshots created and deleted that a caller asked for.
    pub(super) snapshots: RecentResources<SnapshotId, Snapshot>,
    /// Attachments that were ordered or observed.
    pub(super) attached: RecentAttachments,
    /// Detachments that were ordered or observed.
    pub(super) detached: RecentDetachments,
    /// Disks whose category, performance or tags were changed.
    pub(super) changes: RecentChanges,
    /// Elastic ephemeral disks that were created or observed.
    pub(super) ephemeral: EphemeralDisks,
}
