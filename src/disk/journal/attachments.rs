//! Which disks have just come to a node or left one. A read of before that would make a new attachment
//! look complete, or a detachment look over, before it is.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::base::Deadline;
use crate::disk::stale_read::LAG;
use crate::model::{Disk, DiskId, InstanceId};

/// How long an attachment may be under way that nobody watches any more.
const UNDER_WAY: Duration = Duration::from_secs(600);

/// The disks that left a node within the lag of reads.
#[derive(Debug, Default)]
pub(in crate::disk) struct RecentDetachments(Mutex<HashMap<(DiskId, InstanceId), Departure>>);

#[derive(Debug)]
struct Departure {
    until: Deadline,
    /// By the cloud's clock.
    at: Option<Timestamp>,
}

impl RecentDetachments {
    /// The disk leaves the node now, or has left it, when the cloud says.
    pub(in crate::disk) fn note(&self, disk: &DiskId, node: &InstanceId, at: Option<Timestamp>) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.retain(|_, departure| !departure.until.is_over());
        let departure = Departure {
            until: Deadline::after(LAG),
            at,
        };
        left.insert((disk.clone(), node.clone()), departure);
    }

    /// Whether reads may still be of before the disk left the node.
    pub(in crate::disk) fn lately(&self, disk: &DiskId, node: &InstanceId) -> bool {
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.get(&(disk.clone(), node.clone()))
            .is_some_and(|departure| !departure.until.is_over())
    }

    /// Whether the row, which shows the disk on the node, may be of before it left there. One that was
    /// attached after it had left is not; within one second the cloud's times do not tell.
    pub(in crate::disk) fn is_before(&self, row: &Disk, node: &InstanceId) -> bool {
        if !self.lately(&row.id, node) {
            return false;
        }
        let left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let departure = left.get(&(row.id.clone(), node.clone()));
        let at = departure.and_then(|departure| departure.at);
        let after = row.attached.zip(at);
        after.is_none_or(|(attached, left)| attached <= left)
    }
}

/// The disks that came to a node within the lag of reads, or are on their way.
#[derive(Debug)]
pub(in crate::disk) struct RecentAttachments {
    began: Instant,
    at: Mutex<HashMap<(DiskId, InstanceId), Arrival>>,
}

#[derive(Debug)]
struct Arrival {
    until: Deadline,
    /// By the cloud's clock; none while it is on its way.
    at: Option<Timestamp>,
}

impl Default for RecentAttachments {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            at: Mutex::default(),
        }
    }
}

impl RecentAttachments {
    /// The disk is on its way to the node.
    pub(in crate::disk) fn on_its_way(&self, disk: &DiskId, node: &InstanceId) {
        self.put(disk, node, UNDER_WAY, None);
    }

    /// The disk is on the node.
    pub(in crate::disk) fn note(&self, row: &Disk, node: &InstanceId) {
        self.put(&row.id, node, LAG, row.attached);
    }

    /// Whether the disk came to the node lately, or is on its way.
    pub(in crate::disk) fn lately(&self, disk: &DiskId, node: &InstanceId) -> bool {
        let at = self.lock();
        at.get(&(disk.clone(), node.clone()))
            .is_some_and(|arrival| !arrival.until.is_over())
    }

    /// Whether the row, which does not show the disk on the node, may be of before it came there. One
    /// that was detached after it had come is not. What came before this process began is not known.
    pub(in crate::disk) fn is_before(&self, row: &Disk, node: &InstanceId) -> bool {
        let came = {
            let at = self.lock();
            let arrival = at.get(&(row.id.clone(), node.clone()));
            arrival.and_then(|arrival| arrival.at)
        };
        let after = row.detached.zip(came);
        self.is_unsure(&row.id, node) && after.is_none_or(|(detached, came)| detached <= came)
    }

    /// Whether a read that does not show the disk on the node may be of before it came there.
    pub(in crate::disk) fn is_unsure(&self, disk: &DiskId, node: &InstanceId) -> bool {
        let known = self.lock().contains_key(&(disk.clone(), node.clone()));
        self.lately(disk, node) || !known && self.began.elapsed() < LAG
    }

    /// The disk is not on the node any more, or did not get there.
    pub(in crate::disk) fn forget(&self, disk: &DiskId, node: &InstanceId) {
        self.lock().remove(&(disk.clone(), node.clone()));
    }

    fn put(&self, disk: &DiskId, node: &InstanceId, long: Duration, at: Option<Timestamp>) {
        let mut came = self.lock();
        came.retain(|_, arrival| !arrival.until.is_over());
        let until = Deadline::after(long);
        came.insert((disk.clone(), node.clone()), Arrival { until, at });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(DiskId, InstanceId), Arrival>> {
        self.at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_disk_has_left_lately_only_that_node_and_only_for_a_while() {
        let left = RecentDetachments::default();
        let disk: DiskId = "d-1".parse().unwrap();
        let (one, two): (InstanceId, InstanceId) = ("i-1".parse().unwrap(), "i-2".parse().unwrap());
        left.note(&disk, &one, None);
        assert!(left.lately(&disk, &one) && !left.lately(&disk, &two));
        // A shared disk leaves several.
        left.note(&disk, &two, None);
        assert!(left.lately(&disk, &one) && left.lately(&disk, &two));
        tokio::time::advance(LAG + Duration::from_millis(1)).await;
        assert!(!left.lately(&disk, &one));
        left.note(&"d-2".parse().unwrap(), &one, None);
        assert_eq!(left.0.lock().unwrap().len(), 1);
    }
}
