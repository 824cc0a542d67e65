//! The CSI Controller service: parses requests, calls the disk services and builds responses.

use std::future::Future;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use self::node_categories::NodeCategories;
use self::operation::Operation;
use self::paging::Listings;
use super::proto::controller_server::Controller;
pub use super::request::Settings;
use super::{proto, request, status};
use crate::base::{KeyedLocks, LockGuard, Tasks};
use crate::cluster::events::EventRecorder;
use crate::cluster::nodes::Nodes;
use crate::disk::{self, DiskServices};

mod capacity;
mod create;
mod events;
mod expand;
mod health;
mod list;
mod modify;
mod node_categories;
pub(super) mod operation;
pub(super) mod paging;
mod publish;
pub(super) mod response;
mod snapshot;
mod validate;

#[derive(Debug, Clone)]
pub struct Service {
    pub(super) disks: Arc<DiskServices>,
    settings: Arc<Settings>,
    locks: KeyedLocks,
    pub(super) listings: Listings,
    tasks: Tasks,
    events: EventRecorder,
    lists_published_nodes: bool,
    node_categories: NodeCategories,
}

impl Service {
    /// Background work runs on `tasks`.
    #[must_use]
    pub fn new(disks: Arc<DiskServices>, settings: Settings, tasks: Tasks) -> Self {
        Self {
            disks,
            settings: Arc::new(settings),
            locks: KeyedLocks::default(),
            listings: Listings::default(),
            tasks,
            events: EventRecorder::default(),
            lists_published_nodes: false,
            node_categories: NodeCategories::default(),
        }
    }

    /// Uses the categories that the nodes of the cluster report.
    #[must_use]
    pub fn with_nodes(mut self, nodes: Option<Nodes>) -> Self {
        self.node_categories = nodes.map_or_else(NodeCategories::default, NodeCategories::of_cluster);
        self
    }

    /// Whether ListVolumes is to be compared with the attachments that csi-attacher expects
    /// (`LIST_VOLUMES_PUBLISHED_NODES`).
    #[must_use]
    pub fn with_published_nodes(mut self, enabled: bool) -> Self {
        self.lists_published_nodes = enabled;
        self
    }

    /// Writes Kubernetes events about failures.
    #[must_use]
    pub fn with_events(mut self, events: EventRecorder) -> Self {
        self.events = events;
        self
    }

    /// Locks an operation. `ABORTED` while a conflicting operation is pending.
    pub(super) fn begin(&self, operation: &Operation<'_>) -> Result<LockGuard, Status> {
        let guard = self.locks.try_lock_all(operation.locks());
        guard.ok_or_else(|| status::operation_pending(operation))
    }

    /// Runs a locked operation until it finishes or the caller cancels.
    ///
    /// On cancellation the operation is dropped and makes no further cloud call. This is safe, like a crash: the
    /// repeated call finds the result of an earlier one by its token, its tags or its state.
    pub(super) async fn run<T, F>(&self, guard: LockGuard, operation: F) -> Result<T, Status>
    where
        T: Send + 'static,
        F: Future<Output = disk::Result<T>> + Send + 'static,
    {
        Ok(self.try_run(guard, operation).await??)
    }

    /// Like [`Service::run`], with the error of the operation as such.
    pub(super) async fn try_run<T, F>(&self, guard: LockGuard, operation: F) -> Result<disk::Result<T>, Status>
    where
        T: Send + 'static,
        F: Future<Output = disk::Result<T>> + Send + 'static,
    {
        // On the heap: the future is large and would be part of every handler.
        let operation = Box::pin(operation);
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

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Controller for Service {
    async fn create_volume(
        &self,
        request: Request<proto::CreateVolumeRequest>,
    ) -> RpcResult<proto::CreateVolumeResponse> {
        let call = request::read(&request, |message| {
            request::create_volume::create(message, &self.settings)
        })?;
        create::create(self, call).await.map(Response::new)
    }

    async fn delete_volume(
        &self,
        request: Request<proto::DeleteVolumeRequest>,
    ) -> RpcResult<proto::DeleteVolumeResponse> {
        let call = request::read(&request, request::volume::delete)?;
        create::delete(self, call).await.map(Response::new)
    }

    async fn controller_publish_volume(
        &self,
        request: Request<proto::ControllerPublishVolumeRequest>,
    ) -> RpcResult<proto::ControllerPublishVolumeResponse> {
        let call = request::read(&request, request::publish::publish)?;
        publish::publish(self, call).await.map(Response::new)
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<proto::ControllerUnpublishVolumeRequest>,
    ) -> RpcResult<proto::ControllerUnpublishVolumeResponse> {
        let call = request::read(&request, request::publish::unpublish)?;
        publish::unpublish(self, call).await.map(Response::new)
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<proto::ValidateVolumeCapabilitiesRequest>,
    ) -> RpcResult<proto::ValidateVolumeCapabilitiesResponse> {
        let call = request::read(&request, request::validate::validate)?;
        validate::validate(self, call).await.map(Response::new)
    }

    async fn list_volumes(&self, request: Request<proto::ListVolumesRequest>) -> RpcResult<proto::ListVolumesResponse> {
        let call = request::read(&request, request::page::volumes)?;
        list::volumes(self, call).await.map(Response::new)
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<proto::ControllerGetCapabilitiesRequest>,
    ) -> RpcResult<proto::ControllerGetCapabilitiesResponse> {
        Ok(Response::new(response::capabilities(self.lists_published_nodes)))
    }

    async fn get_capacity(&self, request: Request<proto::GetCapacityRequest>) -> RpcResult<proto::GetCapacityResponse> {
        let call = request::read(&request, |message| {
            request::create_volume::capacity(message, &self.settings)
        })?;
        capacity::capacity(self, call).await.map(Response::new)
    }

    async fn create_snapshot(
        &self,
        request: Request<proto::CreateSnapshotRequest>,
    ) -> RpcResult<proto::CreateSnapshotResponse> {
        let call = request::read(&request, |message| request::snapshot::create(message, &self.settings))?;
        snapshot::create(self, call).await.map(Response::new)
    }

    async fn delete_snapshot(
        &self,
        request: Request<proto::DeleteSnapshotRequest>,
    ) -> RpcResult<proto::DeleteSnapshotResponse> {
        let call = request::read(&request, request::snapshot::delete)?;
        snapshot::delete(self, call).await.map(Response::new)
    }

    async fn list_snapshots(
        &self,
        request: Request<proto::ListSnapshotsRequest>,
    ) -> RpcResult<proto::ListSnapshotsResponse> {
        let call = request::read(&request, request::snapshot::list)?;
        list::snapshots(self, call).await.map(Response::new)
    }

    async fn controller_modify_volume(
        &self,
        request: Request<proto::ControllerModifyVolumeRequest>,
    ) -> RpcResult<proto::ControllerModifyVolumeResponse> {
        let call = request::read(&request, request::volume::modify)?;
        modify::modify(self, call).await.map(Response::new)
    }

    async fn controller_get_volume(
        &self,
        request: Request<proto::ControllerGetVolumeRequest>,
    ) -> RpcResult<proto::ControllerGetVolumeResponse> {
        let call = request::read(&request, request::volume::get)?;
        health::volume(self, call).await.map(Response::new)
    }

    async fn controller_get_volume_health(
        &self,
        request: Request<proto::ControllerGetVolumeHealthRequest>,
    ) -> RpcResult<proto::ControllerGetVolumeHealthResponse> {
        let call = request::read(&request, request::volume::health)?;
        health::health(self, call).await.map(Response::new)
    }

    async fn controller_list_volume_health(
        &self,
        request: Request<proto::ControllerListVolumeHealthRequest>,
    ) -> RpcResult<proto::ControllerListVolumeHealthResponse> {
        let call = request::read(&request, request::page::health)?;
        health::list(self, call).await.map(Response::new)
    }

    async fn get_snapshot(&self, request: Request<proto::GetSnapshotRequest>) -> RpcResult<proto::GetSnapshotResponse> {
        let call = request::read(&request, request::snapshot::get)?;
        snapshot::get(self, call).await.map(Response::new)
    }

    async fn controller_expand_volume(
        &self,
        request: Request<proto::ControllerExpandVolumeRequest>,
    ) -> RpcResult<proto::ControllerExpandVolumeResponse> {
        let call = request::read(&request, request::volume::expand)?;
        expand::expand(self, call).await.map(Response::new)
    }
}
