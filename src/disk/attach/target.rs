//! The target of an attach or detach call, and the errors that name it.

use crate::base::Deadline;
use crate::disk::error::{Error, rejected};
use crate::model::{DiskId, Failure, InstanceId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum AttachOperation {
    Attach,
    Detach,
}

pub(super) type Order = (DiskId, InstanceId, AttachOperation);

#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) deadline: Deadline,
    pub(super) disk: &'a DiskId,
    pub(super) node: &'a InstanceId,
}

impl Target<'_> {
    pub(super) fn ids(self) -> (DiskId, InstanceId) {
        (self.disk.clone(), self.node.clone())
    }

    pub(super) fn order(self, operation: AttachOperation) -> Order {
        (self.disk.clone(), self.node.clone(), operation)
    }

    pub(super) fn step(self, operation: AttachOperation) -> String {
        let Self { disk, node, .. } = self;
        match operation {
            AttachOperation::Attach => format!("attach disk {disk} to node {node}"),
            AttachOperation::Detach => format!("detach disk {disk} from node {node}"),
        }
    }

    pub(super) fn cannot_attach(self, failure: Failure, why: &str, source: Option<ecs::Error>) -> Error {
        let Self { disk, node, .. } = self;
        let text = format!("disk {disk} cannot be attached to node {node}{why}");
        rejected(failure, text, source)
    }

    /// The error if the row does not show the disk detached from an instance that the cloud names as missing.
    pub(super) fn not_released(self, source: ecs::Error) -> Error {
        let step = self.step(AttachOperation::Detach);
        let text = format!("cannot {step}: the cloud has no such node, and does not show the disk as detached");
        rejected(Failure::NodeReleased, text, source)
    }
}
