//! Which disks this process has changed just now: a read of before would show that a disk is what it
//! was, and a change back to that would look done before it is begun.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::base::Deadline;
use crate::disk::stale_read::LAG;
use crate::model::DiskId;

/// The disks that were changed within the lag of reads.
#[derive(Debug, Default)]
pub(in crate::disk) struct RecentChanges(Mutex<HashMap<DiskId, Deadline>>);

impl RecentChanges {
    /// The disk changes now, or may.
    pub(in crate::disk) fn note(&self, disk: &DiskId) {
        let mut changed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changed.retain(|_, until| !until.is_over());
        changed.insert(disk.clone(), Deadline::after(LAG));
    }

    /// Whether reads may still be of before the change.
    pub(in crate::disk) fn lately(&self, disk: &DiskId) -> bool {
        let changed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changed.get(disk).is_some_and(|until| !until.is_over())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_disk_has_changed_lately_only_for_a_while() {
        let changed = RecentChanges::default();
        let (disk, other): (DiskId, DiskId) = ("d-1".parse().unwrap(), "d-2".parse().unwrap());
        changed.note(&disk);
        assert!(changed.lately(&disk) && !changed.lately(&other));
        tokio::time::advance(LAG + Duration::from_millis(1)).await;
        assert!(!changed.lately(&disk));
        changed.note(&other);
        assert_eq!(changed.0.lock().unwrap().len(), 1);
    }
}
