//! Reads the number of parallel operations of an instance from its tags when a request queues for it, with one describe
//! for all such instances. Trial and error would cost a rejected request per instance.

use std::convert::Infallible;
use std::time::Duration;

use super::Attacher;
use super::queue::{Operation, Permit};
use crate::base::{Deadline, Elapsed};
use crate::cloud::view::Observation;
use crate::model::InstanceId;

const LONGEST_READ: Duration = Duration::from_secs(5);

/// Tags of instances that take several operations at a time (ECS, "parallel attach"), and how many.
/// More has not been seen to work.
const PARALLEL_ATTACH: (&str, usize) = ("supportConcurrencyAttach", 32);
const PARALLEL_DETACH: (&str, usize) = ("supportConcurrencyDetach", 5);

impl Attacher {
    pub(super) async fn permit(
        &self,
        deadline: Deadline,
        node: &InstanceId,
        operation: Operation,
    ) -> Result<Permit, Elapsed> {
        tokio::select! {
            // The instance is read only if the order has to wait, and while it queues: no permit is unused meanwhile.
            biased;
            permit = self.queues.acquire(node, operation, deadline) => permit,
            never = self.read_parallelism(deadline, node) => match never {},
        }
    }

    async fn read_parallelism(&self, deadline: Deadline, node: &InstanceId) -> Infallible {
        loop {
            tokio::time::sleep_until(self.queues.read_due(node)).await;
            let read = deadline.at_most(LONGEST_READ);
            match self.instances.observe(node, read).await {
                Ok(Observation::Row(row)) => {
                    let most = |(tag, parallel)| match row.tags.get(tag) {
                        Some(value) if value == "true" => parallel,
                        _ => 1,
                    };
                    let (attach, detach) = (most(PARALLEL_ATTACH), most(PARALLEL_DETACH));
                    self.queues.learn(node, attach, detach);
                }
                // An empty response says nothing about the instance.
                result => {
                    tracing::debug!(node.id = %node, ?result, "cannot read the number of parallel attach operations of the node");
                    self.queues.read_failed(node);
                }
            }
        }
    }
}
