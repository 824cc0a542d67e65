//! Attaching disks to nodes and detaching them.

use std::sync::Arc;

use super::dependencies::Dependencies;
use super::journal::Journal;
use crate::cloud::EcsApi;
use crate::cloud::view::Poller;
use crate::model::{Disk, DiskId, Instance, InstanceId};

#[expect(
    clippy::module_inception,
    reason = "the operation that the service is named after"
)]
mod attach;
mod call;
mod detach;
mod explain;
mod order;
mod parallelism;
mod publish;
mod queue;
mod refusals;
mod takeover;

pub use publish::{Publish, Share};

#[derive(Debug)]
pub struct Attacher {
    ecs: Arc<dyn EcsApi>,
    disks: Arc<Poller<DiskId, Disk>>,
    instances: Poller<InstanceId, Instance>,
    queues: queue::AttachQueues,
    refusals: refusals::RejectedRequests,
    journal: Arc<Journal>,
}

impl Attacher {
    pub(super) fn new(shared: &Dependencies, instances: Poller<InstanceId, Instance>) -> Self {
        let shared = shared.clone();
        Self {
            ecs: shared.ecs,
            disks: shared.disks,
            instances,
            queues: queue::AttachQueues::default(),
            refusals: refusals::RejectedRequests::default(),
            journal: shared.journal,
        }
    }
}
