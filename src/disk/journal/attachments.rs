//! Recent attaches and detaches. A stale read from before them would make a new attach or detach appear complete too early.

use std::time::Duration;

use super::recent::Recent;
use crate::disk::stale_read::READ_LAG;
use crate::model::{Disk, DiskId, InstanceId};
use jiff::Timestamp;

/// How long an attachment may be under way that nobody watches any more.
const UNDER_WAY: Duration = Duration::from_secs(600);

/// How long after its end an order without an outcome may take effect: a request that hangs on its way is given up after
/// less, and reads lag.
const LATE: Duration = Duration::from_secs(15);

/// A disk and a node, and since when by the cloud's clock as far as that is known.
type Times = Recent<(DiskId, InstanceId), Option<Timestamp>>;

fn key(disk: &DiskId, node: &InstanceId) -> (DiskId, InstanceId) {
    (disk.clone(), node.clone())
}

/// The disks that left a node within the lag of reads.
#[derive(Debug, Default)]
pub(in crate::disk) struct RecentDetachments(Times);

impl RecentDetachments {
    /// The disk leaves the node now, or has left it, when the cloud says.
    pub(in crate::disk) fn note(&self, disk: &DiskId, node: &InstanceId, at: Option<Timestamp>) {
        self.0.note(&key(disk, node), READ_LAG, at);
    }

    /// Whether reads may still be of before the disk left the node.
    pub(in crate::disk) fn is_recent_or_pending(&self, disk: &DiskId, node: &InstanceId) -> bool {
        self.0.get(&key(disk, node)).is_some()
    }

    /// Whether the row, which shows the disk on the node, may be of before it left there. One that was
    /// attached after it had left is not; within one second the cloud's times do not tell.
    pub(in crate::disk) fn is_before(&self, row: &Disk, node: &InstanceId) -> bool {
        let left = self.0.get(&key(&row.id, node));
        left.is_some_and(|at| is_not_after(row.attached, at))
    }
}

/// The disks that came to a node within the lag of reads, or are on their way.
#[derive(Debug, Default)]
pub(in crate::disk) struct RecentAttachments {
    at: Times,
    /// Requests with an unknown outcome that may still take effect.
    unresolved: Recent<(DiskId, InstanceId), ()>,
}

impl RecentAttachments {
    pub(in crate::disk) fn record_started(&self, disk: &DiskId, node: &InstanceId) {
        self.at.note(&key(disk, node), UNDER_WAY, None);
    }

    pub(in crate::disk) fn note(&self, row: &Disk, node: &InstanceId) {
        self.at.note(&key(&row.id, node), READ_LAG, row.attached);
    }

    /// Whether the disk was attached to the node recently, or is being attached.
    pub(in crate::disk) fn is_recent_or_pending(&self, disk: &DiskId, node: &InstanceId) -> bool {
        self.at.get(&key(disk, node)).is_some()
    }

    /// Whether the row, which does not show the attachment, can be from before it. A row with a later detach is not. Attachments
    /// by other replicas are unknown.
    pub(in crate::disk) fn is_before(
        &self,
        row: &Disk,
        node: &InstanceId,
        is_new_leader: bool,
    ) -> bool {
        let key = key(&row.id, node);
        let came = self.at.get(&key);
        let is_unsure = came.is_some() || !self.at.contains(&key) && is_new_leader;
        is_unsure && is_not_after(row.detached, came.flatten())
    }

    /// Records a request with an unknown outcome.
    pub(in crate::disk) fn record_unresolved(&self, disk: &DiskId, node: &InstanceId) {
        self.unresolved.note(&key(disk, node), LATE, ());
    }

    /// Records that the outcome of the latest request is known, which resolves earlier ones.
    pub(in crate::disk) fn record_resolved(&self, disk: &DiskId, node: &InstanceId) {
        self.unresolved.take(&key(disk, node));
    }

    /// Whether a request with an unknown outcome may still take effect.
    pub(in crate::disk) fn may_take_effect(&self, disk: &DiskId, node: &InstanceId) -> bool {
        self.unresolved.get(&key(disk, node)).is_some()
    }

    /// Removes the attachment: the disk was detached, or its attach failed.
    pub(in crate::disk) fn forget(&self, disk: &DiskId, node: &InstanceId) {
        self.at.take(&key(disk, node));
    }
}

/// Whether what the row says happened no later than what is known, or one of them is not known.
fn is_not_after(row: Option<Timestamp>, known: Option<Timestamp>) -> bool {
    row.zip(known).is_none_or(|(row, known)| row <= known)
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
        assert!(left.is_recent_or_pending(&disk, &one) && !left.is_recent_or_pending(&disk, &two));
        // A shared disk leaves several.
        left.note(&disk, &two, None);
        assert!(left.is_recent_or_pending(&disk, &one) && left.is_recent_or_pending(&disk, &two));
        tokio::time::advance(READ_LAG + Duration::from_millis(1)).await;
        assert!(!left.is_recent_or_pending(&disk, &one));
    }
}
