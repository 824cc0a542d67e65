//! Recent attaches and detaches. A stale read from before them would make a new attach or detach appear complete too
//! early.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use super::ttl_cache::TtlCache;
use crate::base::lock;
use crate::disk::stale_read::READ_LAG;
use crate::model::{Disk, DiskId, InstanceId};
use jiff::Timestamp;

/// Maximum duration of an attach that no call waits for.
const PENDING_TTL: Duration = Duration::from_secs(600);

/// How long after its end a request with an unknown outcome may take effect, including the lag of reads.
const UNRESOLVED_TTL: Duration = Duration::from_secs(15);

/// The time by the cloud's clock, if known, for a disk and a node.
type Times = TtlCache<(DiskId, InstanceId), Option<Timestamp>>;

fn key(disk: &DiskId, node: &InstanceId) -> (DiskId, InstanceId) {
    (disk.clone(), node.clone())
}

/// The disks that were detached from a node within the lag of reads.
#[derive(Debug, Default)]
pub(in crate::disk) struct RecentDetachments(Times);

impl RecentDetachments {
    /// Records a detach in progress, or one that completed at the cloud time `at`.
    pub(in crate::disk) fn record(&self, disk: &DiskId, node: &InstanceId, at: Option<Timestamp>) {
        self.0.insert(&key(disk, node), READ_LAG, at);
    }

    /// Whether reads may be older than the detach.
    pub(in crate::disk) fn is_recent(&self, disk: &DiskId, node: &InstanceId) -> bool {
        self.0.get(&key(disk, node)).is_some()
    }

    /// Whether the row, which shows the disk attached to the node, may be older than the detach. A row with a later
    /// attach time is not. The cloud's times have a resolution of one second.
    pub(in crate::disk) fn is_stale(&self, row: &Disk, node: &InstanceId) -> bool {
        let detached = self.0.get(&key(&row.id, node));
        detached.is_some_and(|at| is_not_after(row.attached, at))
    }
}

/// The disks that were attached to a node within the lag of reads, or are attaching.
#[derive(Debug, Default)]
pub(in crate::disk) struct RecentAttachments {
    at: Times,
    /// Requests with an unknown outcome that may still take effect.
    unresolved: TtlCache<(DiskId, InstanceId), ()>,
}

impl RecentAttachments {
    pub(in crate::disk) fn record_pending(&self, disk: &DiskId, node: &InstanceId) {
        self.at.insert(&key(disk, node), PENDING_TTL, None);
    }

    pub(in crate::disk) fn record_complete(&self, row: &Disk, node: &InstanceId) {
        self.at.insert(&key(&row.id, node), READ_LAG, row.attached);
    }

    pub(in crate::disk) fn is_recent(&self, disk: &DiskId, node: &InstanceId) -> bool {
        self.at.get(&key(disk, node)).is_some()
    }

    /// Whether the row, which does not show the attachment, may be older than it. A row with a later detach time is
    /// not. Attachments by other replicas are unknown.
    pub(in crate::disk) fn is_stale(&self, row: &Disk, node: &InstanceId, is_new_leader: bool) -> bool {
        let key = key(&row.id, node);
        let attached = self.at.get(&key);
        let is_unsure = attached.is_some() || !self.at.contains_key(&key) && is_new_leader;
        is_unsure && is_not_after(row.detached, attached.flatten())
    }

    pub(in crate::disk) fn record_unresolved(&self, disk: &DiskId, node: &InstanceId) {
        self.unresolved.insert(&key(disk, node), UNRESOLVED_TTL, ());
    }

    /// Records that the outcome of the latest request is known, which resolves earlier ones.
    pub(in crate::disk) fn record_resolved(&self, disk: &DiskId, node: &InstanceId) {
        self.unresolved.remove(&key(disk, node));
    }

    pub(in crate::disk) fn may_take_effect(&self, disk: &DiskId, node: &InstanceId) -> bool {
        self.unresolved.get(&key(disk, node)).is_some()
    }

    /// Removes the attachment: the disk was detached, or its attach failed.
    pub(in crate::disk) fn remove(&self, disk: &DiskId, node: &InstanceId) {
        self.at.remove(&key(disk, node));
    }
}

/// The volumes that this process has published and not unpublished since.
#[derive(Debug, Default)]
pub(in crate::disk) struct Published(Mutex<HashMap<DiskId, BTreeSet<InstanceId>>>);

impl Published {
    pub(in crate::disk) fn record(&self, disk: &DiskId, node: &InstanceId) {
        lock(&self.0).entry(disk.clone()).or_default().insert(node.clone());
    }

    /// Records that the disk is being detached from the node.
    pub(in crate::disk) fn remove(&self, disk: &DiskId, node: &InstanceId) {
        let mut volumes = lock(&self.0);
        if let Some(nodes) = volumes.get_mut(disk) {
            nodes.remove(node);
            if nodes.is_empty() {
                volumes.remove(disk);
            }
        }
    }

    pub(in crate::disk) fn contains(&self, disk: &DiskId, node: &InstanceId) -> bool {
        lock(&self.0).get(disk).is_some_and(|nodes| nodes.contains(node))
    }

    pub(in crate::disk) fn nodes_of(&self, disk: &DiskId) -> BTreeSet<InstanceId> {
        lock(&self.0).get(disk).cloned().unwrap_or_default()
    }

    pub(in crate::disk) fn nodes(&self) -> HashSet<InstanceId> {
        lock(&self.0).values().flatten().cloned().collect()
    }
}

/// Whether the time in the row is not after the known time, or either is unknown.
fn is_not_after(row: Option<Timestamp>, known: Option<Timestamp>) -> bool {
    row.zip(known).is_none_or(|(row, known)| row <= known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn detach_is_recent_per_node_and_for_the_lag_of_reads() {
        let detached = RecentDetachments::default();
        let disk: DiskId = "d-1".parse().unwrap();
        let (one, two): (InstanceId, InstanceId) = ("i-1".parse().unwrap(), "i-2".parse().unwrap());
        detached.record(&disk, &one, None);
        assert!(detached.is_recent(&disk, &one) && !detached.is_recent(&disk, &two));
        // A multi-attach disk can be detached from several nodes.
        detached.record(&disk, &two, None);
        assert!(detached.is_recent(&disk, &one) && detached.is_recent(&disk, &two));
        tokio::time::advance(READ_LAG + Duration::from_millis(1)).await;
        assert!(!detached.is_recent(&disk, &one));
    }
}
