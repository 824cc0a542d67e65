use std::future::Future;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::node_categories::NodeCategories;
use super::operation::LockedOperation;
use super::paging::Listings;
use crate::base::{KeyedLocks, Tasks};
use crate::cluster::events::EventRecorder;
use crate::cluster::nodes::Nodes;
use crate::csi::request::DriverLocation;
use crate::csi::status;
use crate::disk::DiskServices;
use crate::model::Failure;

#[derive(Debug, Clone)]
pub struct Service {
    pub(super) disks: Arc<DiskServices>,
    pub(super) location: Arc<DriverLocation>,
    locks: KeyedLocks,
    pub(super) listings: Listings,
    tasks: Tasks,
    pub(super) events: EventRecorder,
    pub(super) lists_published_nodes: bool,
    pub(super) node_categories: NodeCategories,
}

impl Service {
    pub fn new(disks: Arc<DiskServices>, location: DriverLocation, tasks: Tasks) -> Self {
        Self {
            disks,
            location: Arc::new(location),
            locks: KeyedLocks::default(),
            listings: Listings::default(),
            tasks,
            events: EventRecorder::default(),
            lists_published_nodes: false,
            node_categories: NodeCategories::default(),
        }
    }

    pub fn with_cluster(mut self, events: EventRecorder, nodes: Option<Nodes>) -> Self {
        (self.events, self.node_categories.nodes) = (events, nodes);
        self
    }

    /// Whether ListVolumes is to be compared with the attachments that csi-attacher expects
    /// (`LIST_VOLUMES_PUBLISHED_NODES`).
    pub fn with_published_nodes(mut self, enabled: bool) -> Self {
        self.lists_published_nodes = enabled;
        self
    }

    /// Locks and runs an operation until it finishes or the caller cancels. `ABORTED` while a conflicting operation is
    /// pending.
    ///
    /// On cancellation the operation is dropped and makes no further cloud call. This is safe, like a crash: the
    /// repeated call finds the result of an earlier one by its token, its tags or its state.
    pub(super) async fn run<T, F>(
        &self,
        locked: LockedOperation,
        operation: impl FnOnce(Arc<DiskServices>) -> F,
    ) -> Result<T, Status>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let LockedOperation { subject, locks } = locked;
        let guard = self.locks.try_lock_all(locks);
        let pending = || format!("another call for {subject} is still pending");
        let guard = guard.ok_or_else(|| status::with_advice(Failure::OperationPending, &pending()))?;
        // On the heap: the future is large and would be part of every handler.
        let operation = Box::pin(operation(Arc::clone(&self.disks)));
        let cancelled = CancellationToken::new();
        let _caller = cancelled.clone().drop_guard();
        let run = async move {
            let outcome = cancelled.run_until_cancelled(operation).await;
            drop(guard);
            outcome
        };
        let outcome = self.tasks.run(run).await;
        outcome.ok_or_else(|| Status::aborted("the caller cancelled the call"))
    }
}
