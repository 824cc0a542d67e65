//! Accepted requests of this process, to compensate for stale reads.

use std::sync::Arc;
use std::time::Duration;

use ecs::Client;

use super::evidence::{Active, READ_LAG};
use crate::model::{Disk, DiskId, InstanceId, Snapshot, SnapshotId, Tags};

mod attachments;
mod resources;
mod ttl_cache;

pub(super) use attachments::{Published, RecentAttachments, RecentDetachments};
pub(super) use resources::{RecentChanges, RecentResources};
pub(super) use ttl_cache::TtlCache;

#[derive(Debug)]
pub(super) struct Journal {
    active: Active,
    ecs: Arc<Client>,
    pub(super) disks: RecentResources<DiskId, Disk>,
    pub(super) snapshots: RecentResources<SnapshotId, Snapshot>,
    pub(super) attached: RecentAttachments,
    pub(super) detached: RecentDetachments,
    pub(super) published: Published,
    changes: TtlCache<DiskId, ()>,
    /// Tags of disks that were recently observed without an attachment, with the number of the access key.
    free: TtlCache<DiskId, (Tags, u64)>,
    /// Elastic ephemeral disks that were created or observed. They are attached and detached with `DeleteWithInstance`.
    /// Other disks must not be: it would delete them with their instance.
    ephemeral: TtlCache<DiskId, ()>,
}

/// After that, the cloud rejects a call without `DeleteWithInstance`, and a read confirms the category.
const EPHEMERAL: Duration = Duration::from_secs(24 * 3600);
/// How long an observation that the disk is free is used. The cloud rejects the deletion of a disk attached since.
const FREE: Duration = Duration::from_secs(10);

impl Journal {
    pub(super) fn new(active: Active, ecs: Arc<Client>) -> Self {
        Self {
            active,
            ecs,
            disks: RecentResources::default(),
            snapshots: RecentResources::default(),
            attached: RecentAttachments::default(),
            detached: RecentDetachments::default(),
            changes: TtlCache::default(),
            free: TtlCache::default(),
            ephemeral: TtlCache::default(),
            published: Published::default(),
        }
    }

    pub(super) fn record_attached(&self, row: &Disk, node: &InstanceId) {
        self.disks.record_observed(&row.id);
        self.attached.record_complete(row, node);
    }

    pub(super) fn record_observed(&self, row: &Disk) {
        self.disks.record_observed(&row.id);
        if row.is_free() {
            let key = self.ecs.key_generation();
            self.free.insert(&row.id, FREE, (row.tags.clone(), key));
        }
    }

    pub(super) fn record_category(&self, row: &Disk) {
        if row.category.is_ephemeral() {
            self.ephemeral.insert(&row.id, EPHEMERAL, ());
        }
    }

    pub(super) fn is_ephemeral(&self, disk: &DiskId) -> bool {
        self.ephemeral.get(disk).is_some()
    }

    /// The tags of the disk if it was observed without an attachment a short time ago, with the current access key. The
    /// observation is used once.
    pub(super) fn take_free(&self, disk: &DiskId) -> Option<Tags> {
        let (tags, key) = self.free.remove(disk)?;
        (key == self.ecs.key_generation()).then_some(tags)
    }

    /// Whether reads may still be older than changes by other replicas.
    pub(super) fn is_new_leader(&self) -> bool {
        self.active.is_new()
    }

    /// Records that the disk changes now, or may change.
    pub(super) fn record_change(&self, disk: &DiskId) {
        self.changes.insert(disk, READ_LAG, ());
    }

    /// Whether reads may be older than a change. Otherwise a change back would appear complete before it starts.
    pub(super) fn is_recently_changed(&self, disk: &DiskId) -> bool {
        self.changes.get(disk).is_some()
    }
}
