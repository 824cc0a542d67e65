//! Attaching disks to nodes and detaching them.

use std::sync::Arc;

use ecs::Client;
use ecs::poll::{Poller, RunningOperations};

use super::dependencies::Dependencies;
use super::evidence::{Nodes, Rows};
use super::journal::Journal;
use super::refusals::Refusals;
use crate::model::{Disk, Instance, InstanceId};

#[expect(clippy::module_inception, reason = "the operation that the service is named after")]
mod attach;
mod backoff;
mod call;
mod detach;
mod explain;
mod force;
mod parallelism;
mod publish;
mod queue;
mod retry;

pub use publish::{NodeAccess, PublishRequest};
pub use queue::QueueReport;

#[derive(Debug)]
pub struct Attacher {
    ecs: Arc<Client>,
    disks: Arc<Rows<Disk>>,
    instances: Poller<InstanceId, Instance>,
    queues: queue::AttachQueues,
    backoffs: backoff::InstanceBackoffs,
    running: RunningOperations<queue::Order>,
    /// Requests that the cloud rejected because of the disk. [`backoff`] is for those rejected because of the instance.
    refusals: Refusals<queue::Order>,
    journal: Arc<Journal>,
    nodes: Arc<Nodes>,
}

impl Attacher {
    /// The requests that wait for an instance, for metrics.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueReport> {
        self.queues.report()
    }

    pub(super) fn new(shared: &Dependencies, instances: Poller<InstanceId, Instance>) -> Self {
        let shared = shared.clone();
        Self {
            ecs: shared.ecs,
            disks: shared.disks,
            instances,
            queues: queue::AttachQueues::default(),
            backoffs: backoff::InstanceBackoffs::default(),
            running: RunningOperations::default(),
            refusals: Refusals::default(),
            journal: shared.journal,
            nodes: shared.nodes,
        }
    }
}
