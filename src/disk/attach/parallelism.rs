//! How many operations an instance takes at a time. While no order queues for an instance nothing is read. Once one does,
//! the instance's tags are read, by one describe for all such instances. Trying it out instead would cost a refused order
//! for each instance.

use std::time::Duration;

use tokio::time::Instant;

use super::Attacher;
use super::queue::{Operation, Parallelism, Permit};
use crate::base::{Deadline, Elapsed};
use crate::cloud::view::Observation;
use crate::model::{Instance, InstanceId};

/// Tags of instances that take several operations at a time (ECS, "parallel attach").
const ATTACH_TAG: &str = "supportConcurrencyAttach";
const DETACH_TAG: &str = "supportConcurrencyDetach";

/// What they take. More has not been seen to work.
const PARALLEL: Parallelism = Parallelism {
    attach: 32,
    detach: 5,
};

/// Longest read of an instance.
const LONGEST_READ: Duration = Duration::from_secs(5);

impl Attacher {
    /// A permit for an order to the node.
    pub(super) async fn permit(
        &self,
        deadline: Deadline,
        node: &InstanceId,
        operation: Operation,
    ) -> Result<Permit, Elapsed> {
        let mut permit = std::pin::pin!(self.queues.acquire(node, operation, deadline));
        tokio::select! {
            // The instance is read only if the order has to wait, and while it queues: no permit is unused meanwhile.
            biased;
            permit = &mut permit => return permit,
            () = self.read_parallelism(deadline, node) => {}
        }
        permit.await
    }

    /// Reads the parallelism of the instance, unless it is known.
    async fn read_parallelism(&self, deadline: Deadline, node: &InstanceId) {
        while let Some(due) = self.queues.read_due(node) {
            if due > Instant::now() {
                tokio::time::sleep_until(due).await;
                continue;
            }
            let read = deadline.at_most(LONGEST_READ);
            match self.instances.look(node, read).await {
                Ok(Observation::Row(row)) => self.queues.learn(node, parallelism(&row)),
                // An empty response says nothing about the instance.
                Ok(Observation::Missing { .. }) => self.queues.read_failed(node),
                Err(error) => {
                    tracing::debug!(node.id = %node, error = %error, "cannot read how many disks the node takes at a time");
                    self.queues.read_failed(node);
                }
            }
        }
    }
}

fn parallelism(row: &Instance) -> Parallelism {
    let is_tagged = |key| row.tags.get(key).is_some_and(|value| value == "true");
    let most = |key, parallel| if is_tagged(key) { parallel } else { 1 };
    Parallelism {
        attach: most(ATTACH_TAG, PARALLEL.attach),
        detach: most(DETACH_TAG, PARALLEL.detach),
    }
}
