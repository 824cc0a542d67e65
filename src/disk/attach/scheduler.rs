//! What the requests for an instance share: its queue, its backoff, the operations that run, and refusals.
//!
//! The number of parallel operations of an instance is read from its tags while a request for it is queued, with one
//! `DescribeInstances` for all such instances. This avoids a rejected request per instance.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ecs::poll::{Observation, RunningOperations};

use super::backoff::InstanceBackoffs;
use super::queue::{AttachQueues, Permit};
use super::reader::AttachmentReader;
use super::target::{AttachOperation, Order};
use crate::base::{Deadline, Elapsed};
use crate::disk::refusals::Refusals;
use crate::model::InstanceId;

const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Tags of instances that support parallel operations (ECS, "parallel attach"), and the highest number observed to
/// work.
const PARALLEL_ATTACH: (&str, usize) = ("supportConcurrencyAttach", 32);
const PARALLEL_DETACH: (&str, usize) = ("supportConcurrencyDetach", 5);

#[derive(Debug)]
pub(super) struct AttachScheduler {
    pub(super) reader: Arc<AttachmentReader>,
    pub(super) queues: AttachQueues,
    pub(super) backoffs: InstanceBackoffs,
    /// Since when an operation has been running, across calls.
    pub(super) running: RunningOperations<Order>,
    /// Requests that the cloud rejected because of the disk. `backoffs` is for those rejected because of the instance.
    pub(super) refusals: Refusals<Order>,
}

impl AttachScheduler {
    pub(super) fn new(reader: Arc<AttachmentReader>) -> Self {
        Self {
            reader,
            queues: AttachQueues::default(),
            backoffs: InstanceBackoffs::default(),
            running: RunningOperations::default(),
            refusals: Refusals::default(),
        }
    }

    pub(super) async fn permit(
        &self,
        deadline: Deadline,
        node: &InstanceId,
        operation: AttachOperation,
    ) -> Result<Permit, Elapsed> {
        tokio::select! {
            // The instance is read only if the request has to queue, and meanwhile: no permit stays unused.
            biased;
            permit = self.queues.acquire(node, operation, deadline) => permit,
            never = self.read_parallelism(deadline, node) => match never {},
        }
    }

    async fn read_parallelism(&self, deadline: Deadline, node: &InstanceId) -> Infallible {
        loop {
            tokio::time::sleep_until(self.queues.next_read(node)).await;
            let read = deadline.at_most(READ_TIMEOUT);
            match self.reader.observe_instance(read, node).await {
                Ok(Observation::Row(row)) => {
                    let value_of = |(tag, parallel)| match row.tags.get(tag) {
                        Some(value) if value == "true" => parallel,
                        _ => 1,
                    };
                    let (attach, detach) = (value_of(PARALLEL_ATTACH), value_of(PARALLEL_DETACH));
                    self.queues.set_parallelism(node, attach, detach);
                }
                // An empty response proves nothing about the instance.
                result => {
                    tracing::debug!(node.id = %node, ?result, "cannot read the number of parallel attach operations of the node");
                    self.queues.record_read_failure(node);
                }
            }
        }
    }
}
