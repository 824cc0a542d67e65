//! Reads disks and instances, and decides which nodes hold a disk according to a row of `DescribeDisks`.

use std::sync::Arc;

use ecs::poll::{Observation, Poller, WaitError};

use super::target::Target;
use crate::base::Deadline;
use crate::disk::dependencies::Dependencies;
use crate::disk::error::Error;
use crate::disk::evidence::{Nodes, Rows};
use crate::disk::journal::Journal;
use crate::model::{Disk, DiskId, DiskStatus, Instance, InstanceId, InstanceStatus};

#[derive(Debug)]
pub(super) struct AttachmentReader {
    pub(super) disks: Arc<Rows<Disk>>,
    instances: Poller<InstanceId, Instance>,
    pub(super) journal: Arc<Journal>,
    nodes: Arc<Nodes>,
}

impl AttachmentReader {
    pub(super) fn new(shared: &Dependencies, instances: Poller<InstanceId, Instance>) -> Self {
        Self {
            disks: Arc::clone(&shared.disks),
            instances,
            journal: Arc::clone(&shared.journal),
            nodes: Arc::clone(&shared.nodes),
        }
    }

    /// The target of a call. Its node is one of this cluster, whose system disk must be visible.
    pub(super) fn target<'a>(&self, deadline: Deadline, disk: &'a DiskId, node: &'a InstanceId) -> Target<'a> {
        self.nodes.record(node);
        Target { deadline, disk, node }
    }

    pub(super) async fn observe(&self, target: Target<'_>) -> Result<Observation<Disk>, WaitError> {
        self.disks.observe(target.disk, target.deadline).await
    }

    /// The instance; `None` if no response contains it, which proves nothing: without permission, the list is empty.
    pub(super) async fn instance(&self, deadline: Deadline, node: &InstanceId) -> Option<Arc<Instance>> {
        self.observe_instance(deadline, node).await.ok()?.row()
    }

    pub(super) async fn observe_instance(
        &self,
        deadline: Deadline,
        node: &InstanceId,
    ) -> Result<Observation<Instance>, WaitError> {
        self.instances.observe(node, deadline).await
    }

    /// Whether these instances are certainly stopped.
    pub(super) async fn are_stopped(&self, deadline: Deadline, instances: &[InstanceId]) -> bool {
        for instance in instances {
            let row = self.instance(deadline, instance).await;
            if row.is_none_or(|row| row.status != InstanceStatus::Stopped) {
                return false;
            }
        }
        true
    }

    /// Whether the row shows the disk in use on the node and is not older than its detach from there.
    pub(super) fn is_attached(&self, target: Target<'_>, row: &Disk) -> bool {
        row.is_in_use_on(target.node) && !self.journal.detached.is_stale(row, target.node)
    }

    /// The error if another node has the disk in use, unless the row is older than the detach from that node.
    pub(super) fn in_use_elsewhere(&self, target: Target<'_>, row: &Disk) -> Option<Error> {
        let is_exclusive = row.status == DiskStatus::InUse && !row.multi_attach;
        self.other_holder_error(target, row).filter(|_| is_exclusive)
    }

    pub(super) fn other_holder_error(&self, target: Target<'_>, row: &Disk) -> Option<Error> {
        let holder = self.other_holders(target, row).next()?.clone();
        let (disk, node) = target.ids();
        Some(Error::InUseElsewhere { disk, node, holder })
    }

    /// The other nodes that hold the disk.
    pub(super) fn other_holders<'a>(&self, target: Target<'_>, row: &'a Disk) -> impl Iterator<Item = &'a InstanceId> {
        self.holders(row).filter(move |holder| *holder != target.node)
    }

    /// The nodes that hold the disk. A row older than a detach does not show which node holds the disk now.
    pub(super) fn holders<'a>(&self, row: &'a Disk) -> impl Iterator<Item = &'a InstanceId> {
        let holds = |holder: &&InstanceId| !self.journal.detached.is_recent(&row.id, holder);
        row.attachments.iter().filter(holds)
    }
}
