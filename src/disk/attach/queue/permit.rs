//! What an order holds: a place in a queue, then a permit. Dropping either lets others go on, also when a call is cancelled.

use tokio::sync::oneshot;

use super::{AttachQueues, Operation, Parallelism, REFRESH};
use crate::base::Deadline;
use crate::model::InstanceId;

/// The right to have one operation under way at an instance. Dropping it admits the next order.
#[derive(Debug)]
pub(in crate::disk::attach) struct Permit {
    pub(super) queues: AttachQueues,
    pub(super) node: InstanceId,
    pub(super) operation: Operation,
    /// Returned by a waiter that has left: there is nothing to release.
    pub(super) void: bool,
}

/// A place in a queue. Dropping it leaves the queue.
pub(super) struct Place<'a> {
    pub(super) queues: &'a AttachQueues,
    pub(super) node: &'a InstanceId,
    pub(super) permit: oneshot::Receiver<Permit>,
}

impl Permit {
    /// Takes in that the cloud has refused the order because the instance is busy. True if the reason is another
    /// operation of ours, after which there will be another permit; false if it is somebody else's.
    pub(in crate::disk::attach) fn learn_conflict(&self) -> bool {
        let mut nodes = self.queues.lock();
        let Some(queues) = nodes.get_mut(&self.node) else {
            return false;
        };
        let (same, other) = match self.operation {
            Operation::Attach => (queues.attach.running > 1, queues.detach.running > 0),
            Operation::Detach => (queues.detach.running > 1, queues.attach.running > 0),
        };
        let until = Deadline::after(REFRESH);
        if same {
            let known = queues
                .parallelism
                .map_or(Parallelism::ONE, |(known, _)| known);
            let less = match self.operation {
                Operation::Attach => Parallelism { attach: 1, ..known },
                Operation::Detach => Parallelism { detach: 1, ..known },
            };
            queues.parallelism = Some((less, until));
        } else if other {
            queues.exclusive = Some(until);
        }
        same || other
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.void {
            return;
        }
        let mut nodes = self.queues.lock();
        if let Some(queues) = nodes.get_mut(&self.node) {
            queues.queue(self.operation).running -= 1;
            self.queues.admit(&self.node, queues);
            if !queues.is_needed() {
                nodes.remove(&self.node);
            }
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.permit.close();
        let mut nodes = self.queues.lock();
        let Some(queues) = nodes.get_mut(self.node) else {
            return;
        };
        for operation in [Operation::Attach, Operation::Detach] {
            let waiting = &mut queues.queue(operation).waiting;
            waiting.retain(|waiter| !waiter.is_closed());
        }
        // Attaches need not wait any longer for a detach that has left.
        self.queues.admit(self.node, queues);
        if !queues.is_needed() {
            nodes.remove(self.node);
        }
    }
}
