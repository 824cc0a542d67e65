//! State and reads that all calls share: which nodes hold a disk according to a row of `DescribeDisks`, and the queues,
//! backoffs and refusals of the requests.
//!
//! The number of parallel operations of an instance is read from its tags while a request for it is queued, with one
//! `DescribeInstances` for all such instances. This avoids a rejected request per instance.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ecs::Client;
use ecs::poll::{Observation, Poller, RunningOperations, WaitError};
use tokio::time::Instant;

use super::backoff::InstanceBackoffs;
use super::queue::{AttachQueues, Permit};
use super::target::{AttachOperation, Order, Target};
use crate::base::{Deadline, Elapsed};
use crate::disk::dependencies::Dependencies;
use crate::disk::error::Error;
use crate::disk::evidence::{Nodes, Rows};
use crate::disk::journal::Journal;
use crate::disk::refusals::Refusals;
use crate::model::{Disk, DiskId, DiskStatus, Instance, InstanceId, InstanceStatus};

const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Tags of instances that support parallel operations (ECS, "parallel attach"), and the highest number observed to
/// work.
const PARALLEL_ATTACH: (&str, usize) = ("supportConcurrencyAttach", 32);
const PARALLEL_DETACH: (&str, usize) = ("supportConcurrencyDetach", 5);

#[derive(Debug)]
pub(in crate::disk) struct Attachments {
    pub(super) ecs: Arc<Client>,
    pub(super) disks: Arc<Rows<Disk>>,
    instances: Poller<InstanceId, Instance>,
    pub(super) journal: Arc<Journal>,
    nodes: Arc<Nodes>,
    pub(super) queues: AttachQueues,
    pub(super) backoffs: InstanceBackoffs,
    pub(super) running: RunningOperations<Order>,
    /// Requests that the cloud rejected because of the disk. `backoffs` is for those rejected because of the instance.
    pub(super) refusals: Refusals<Order>,
}

impl Attachments {
    pub(in crate::disk) fn new(shared: &Dependencies, instances: Poller<InstanceId, Instance>) -> Self {
        let shared = shared.clone();
        Self {
            ecs: shared.ecs,
            disks: shared.disks,
            instances,
            journal: shared.journal,
            nodes: shared.nodes,
            queues: AttachQueues::default(),
            backoffs: InstanceBackoffs::default(),
            running: RunningOperations::default(),
            refusals: Refusals::default(),
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
        self.instances.observe(node, deadline).await.ok()?.row()
    }

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

    pub(super) fn other_holders<'a>(&self, target: Target<'_>, row: &'a Disk) -> impl Iterator<Item = &'a InstanceId> {
        self.holders(row).filter(move |holder| *holder != target.node)
    }

    /// The nodes that hold the disk. A row older than a detach does not show which node holds the disk now.
    pub(super) fn holders<'a>(&self, row: &'a Disk) -> impl Iterator<Item = &'a InstanceId> {
        let holds = |holder: &&InstanceId| !self.journal.detached.is_recent(&row.id, holder);
        row.attachments.iter().filter(holds)
    }

    /// Since when the operation has been running: now, unless an earlier call has waited for it.
    pub(super) fn start(&self, target: Target<'_>, operation: AttachOperation) -> Instant {
        self.running.start(&target.order(operation))
    }

    pub(super) fn end(&self, target: Target<'_>, operation: AttachOperation) {
        self.running.end(&target.order(operation));
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
            match self.instances.observe(node, deadline.at_most(READ_TIMEOUT)).await {
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
