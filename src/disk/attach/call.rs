//! The parameters of one attach or detach call, and which nodes hold the disk according to a row of `DescribeDisks`.

use ecs::poll::{Observation, WaitError};
use tokio::time::Instant;

use super::Attacher;
use super::queue::Operation;
use crate::base::Deadline;
use crate::disk::error::Error;
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) attacher: &'a Attacher,
    pub(super) deadline: Deadline,
    pub(super) disk: &'a DiskId,
    pub(super) node: &'a InstanceId,
}

impl Attacher {
    pub(super) fn call<'a>(&'a self, deadline: Deadline, disk: &'a DiskId, node: &'a InstanceId) -> Call<'a> {
        self.nodes.record(node);
        let attacher = self;
        Call {
            attacher,
            deadline,
            disk,
            node,
        }
    }
}

impl<'a> Call<'a> {
    pub(super) fn ids(self) -> (DiskId, InstanceId) {
        (self.disk.clone(), self.node.clone())
    }

    pub(super) fn step(self, operation: Operation) -> String {
        let Self { disk, node, .. } = self;
        match operation {
            Operation::Attach => format!("attach disk {disk} to node {node}"),
            Operation::Detach => format!("detach disk {disk} from node {node}"),
        }
    }

    /// Since when the operation has been running: since now, unless an earlier call has started or observed it.
    pub(super) fn start(self, operation: Operation) -> Instant {
        let (disk, node) = self.ids();
        self.attacher.running.start(&(disk, node, operation))
    }

    pub(super) fn running_since(self, operation: Operation) -> Option<Instant> {
        let (disk, node) = self.ids();
        self.attacher.running.since(&(disk, node, operation))
    }

    pub(super) fn end(self, operation: Operation) {
        let (disk, node) = self.ids();
        self.attacher.running.end(&(disk, node, operation));
    }

    pub(super) async fn observe(self) -> Result<Observation<Disk>, WaitError> {
        self.attacher.disks.observe(self.disk, self.deadline).await
    }

    /// Whether the row shows the disk in use on the node and is not older than its detach from there.
    pub(super) fn is_attached(self, row: &Disk) -> bool {
        let detached = &self.attacher.journal.detached;
        row.is_in_use_on(self.node) && !detached.is_stale(row, self.node)
    }

    /// The error if another node has the disk in use, unless the row is older than the detach from that node.
    pub(super) fn in_use_elsewhere(self, row: &Disk) -> Option<Error> {
        let is_exclusive = row.status == DiskStatus::InUse && !row.multi_attach;
        self.other_holder_error(row).filter(|_| is_exclusive)
    }

    pub(super) fn other_holder_error(self, row: &Disk) -> Option<Error> {
        let holder = self.other_holders(row).next()?.clone();
        let (disk, node) = self.ids();
        Some(Error::InUseElsewhere { disk, node, holder })
    }

    /// The other nodes that hold the disk, without recent detaches.
    pub(super) fn other_holders(self, row: &'a Disk) -> impl Iterator<Item = &'a InstanceId> {
        let detached = &self.attacher.journal.detached;
        let holds = move |holder: &&InstanceId| *holder != self.node && !detached.is_recent(&row.id, holder);
        row.attachments.iter().filter(holds)
    }
}
