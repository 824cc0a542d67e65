//! Waiting for the turn at an instance, and learning how many it takes.
//!
//! While nobody queues for an instance nothing is asked about it. When somebody does, one look at the
//! instance, shared and remembered, tells whether it is tagged to take disks side by side. The other
//! way, to try two at once and see, would cost a refused `AttachDisk` for each instance: the budget
//! that matters most.

use super::Attacher;
use std::time::Duration;

use super::queue::{Operation, Parallelism, Permit};
use crate::base::Deadline;
use crate::cloud::view::Look;
use crate::disk::Result;
use crate::disk::error::Error;
use crate::model::{DiskId, Instance, InstanceId};

/// Instances with these tags take several at a time (ECS, "parallel attach").
const ON: &str = "supportConcurrencyAttach";
const OFF: &str = "supportConcurrencyDetach";

/// What they take then: no more than these have been seen to work.
const WIDE: Parallelism = Parallelism { on: 32, off: 5 };

/// Nobody waits longer for the look than a turn is worth.
const LOOK: Duration = Duration::from_secs(5);

/// By these the cloud says that the instance is at another disk.
const BUSY: [&str; 4] = [
    "InvalidOperation.Conflict",
    "OperationConflict.DisksAttachingParallellyExceed",
    "DisksDetachingOnEcsExceeded",
    "OperationConflict",
];

/// Whether the instance is at another disk, by the code of a refusal.
pub(super) fn is_busy(code: Option<&str>) -> bool {
    code.is_some_and(|code| BUSY.contains(&code))
}

impl Attacher {
    /// The turn of this disk at the node.
    ///
    /// # Errors
    /// [`Error::Queue`] when it does not come by the deadline.
    pub(super) async fn turn(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
        way: Operation,
    ) -> Result<Permit> {
        if let Some(turn) = self.queues.free(node, way) {
            return Ok(turn);
        }
        if !self.queues.knows(node) {
            let width = self.width(deadline.at_most(LOOK), node).await;
            self.queues.learn(node, width);
        }
        let turn = self.queues.turn(node, way, deadline).await;
        turn.map_err(|_| Error::Queue {
            disk: disk.clone(),
            verb: match way {
                Operation::Attach => "attached to",
                Operation::Detach => "detached from",
            },
            node: node.clone(),
        })
    }

    /// What the node takes; one at a time where that cannot be learned.
    async fn width(&self, deadline: Deadline, node: &InstanceId) -> Parallelism {
        match self.instances.look(node, deadline).await.map(Look::row) {
            Ok(Some(row)) => Parallelism {
                on: if is_tagged(&row, ON) { WIDE.on } else { 1 },
                off: if is_tagged(&row, OFF) { WIDE.off } else { 1 },
            },
            Ok(None) => Parallelism::ONE,
            Err(error) => {
                tracing::debug!(node.id = %node, error = %error, "not known how many disks the node takes at a time");
                Parallelism::ONE
            }
        }
    }
}

fn is_tagged(row: &Instance, key: &str) -> bool {
    row.tags.get(key).is_some_and(|value| value == "true")
}
