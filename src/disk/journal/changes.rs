//! Disks that this process has changed just now: a read of before would show that a disk is what it was, and a change
//! back to that would look done before it is begun.

use super::recent::Recent;
use crate::disk::stale_read::LAG;
use crate::model::DiskId;

/// The disks that were changed within the lag of reads.
#[derive(Debug, Default)]
pub(in crate::disk) struct RecentChanges(Recent<DiskId, ()>);

impl RecentChanges {
    /// The disk changes now, or may.
    pub(in crate::disk) fn note(&self, disk: &DiskId) {
        self.0.note(disk, LAG, ());
    }

    /// Whether reads may still be of before the change.
    pub(in crate::disk) fn lately(&self, disk: &DiskId) -> bool {
        self.0.get(disk).is_some()
    }
}
