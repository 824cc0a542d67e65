//! Orders of this process that the cloud has accepted, to bridge the lag of its reads.

use std::time::Duration;

use super::stale_read::READ_LAG;
use crate::model::{Disk, DiskId, InstanceId, Snapshot, SnapshotId, Tags};

mod activity;
mod attachments;
mod recent;
mod resources;

pub(super) use activity::Activity;
pub(super) use attachments::{RecentAttachments, RecentDetachments};
pub(super) use recent::Recent;
pub(super) use resources::{Known, RecentResources};

/// What this process did within the lag of reads.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) activity: Activity,
    pub(super) disks: RecentResources<DiskId, Disk>,
    /// Snapshots created and deleted that a caller asked for.
    pub(super) snapshots: RecentResources<SnapshotId, Snapshot>,
    /// Attachments that were ordered or observed.
    pub(super) attached: RecentAttachments,
    /// Detachments that were ordered or observed.
    pub(super) detached: RecentDetachments,
    /// Disks whose category, performance or tags were changed.
    changes: Recent<DiskId, ()>,
    /// Tags of disks that were observed without an attachment a moment ago.
    pub(super) free: Recent<DiskId, Tags>,
    /// Elastic ephemeral disks that were created or observed. They are attached and detached with `DeleteWithInstance`,
    /// which would delete any other disk with its instance: so it is never taken from a request.
    ephemeral: Recent<DiskId, ()>,
}

/// After that the cloud refuses a call without `DeleteWithInstance`, and a description confirms the category.
const EPHEMERAL: Duration = Duration::from_secs(24 * 3600);
/// How long a disk counts as free after it was observed so. The cloud refuses to delete it if it was attached since.
const FREE: Duration = Duration::from_secs(10);

impl Journal {
    pub(super) fn note_attached(&self, row: &Disk, node: &InstanceId) {
        self.disks.observed(&row.id);
        self.attached.note(row, node);
    }

    pub(super) fn observe(&self, row: &Disk) {
        self.disks.observed(&row.id);
        if row.is_free() {
            self.free.note(&row.id, FREE, row.tags.clone());
        }
    }

    pub(super) fn note_category(&self, row: &Disk) {
        if row.category.is_ephemeral() {
            self.ephemeral.note(&row.id, EPHEMERAL, ());
        }
    }

    pub(super) fn is_ephemeral(&self, disk: &DiskId) -> bool {
        self.ephemeral.get(disk).is_some()
    }

    /// Whether reads may still be of before what other replicas did.
    pub(super) fn is_new_leader(&self) -> bool {
        self.activity.since().elapsed() < READ_LAG
    }

    /// The disk changes now, or may.
    pub(super) fn change(&self, disk: &DiskId) {
        self.changes.note(disk, READ_LAG, ());
    }

    /// Whether reads may still be stale after a change: reverting it would appear complete before it starts.
    pub(super) fn is_recently_changed(&self, disk: &DiskId) -> bool {
        self.changes.get(disk).is_some()
    }
}
