//! The CSI Controller service: reads requests, calls the verbs, writes answers.

use std::future::Future;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use self::operation::Operation;
use self::paging::Listings;
use super::proto::controller_server::Controller;
use super::{deadline, limits, proto, status};
use crate::base::{Guard, KeyedLocks, Tasks};
use crate::cluster::events::Events;
use crate::disk::{self, DiskServices};
use crate::model::{RegionId, ZoneId};

pub(super) mod answer;
mod capacity;
mod create;
mod expand;
mod health;
mod list;
mod modify;
pub(super) mod operation;
pub(super) mod paging;
mod publish;
mod snapshot;
mod tell;
mod validate;
mod zones;

/// What the service needs to know of where it runs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The region whose disks it handles.
    pub region: RegionId,
    /// Where disks go when neither topology nor class says so.
    pub zone: Option<ZoneId>,
}

/// The service.
#[derive(Debug, Clone)]
pub struct Service {
    pub(super) disks: Arc<DiskServices>,
    settings: Arc<Settings>,
    locks: KeyedLocks,
    pub(super) listings: Listings,
    tasks: Tasks,
    events: Events,
}

impl Service {
    /// The service over these disks. What it starts runs on `tasks`.
    #[must_use]
    pub fn new(disks: Arc<DiskServices>, settings: Settings, tasks: Tasks) -> Self {
        Self {
            disks,
            settings: Arc::new(settings),
            locks: KeyedLocks::default(),
            listings: Listings::default(),
            tasks,
            events: Events::default(),
        }
    }

    /// The same, telling the cluster what its operators must know.
    #[must_use]
    pub fn with_events(mut self, events: Events) -> Self {
        self.events = events;
        self
    }

    /// Begins an operation.
    ///
    /// # Errors
    /// `ABORTED` while one runs that excludes it.
    pub(super) fn begin(&self, operation: &Operation<'_>) -> Result<Guard, Status> {
        let guard = self.locks.try_lock_all(operation.locks());
        guard.ok_or_else(|| status::busy(operation))
    }

    /// Runs an operation that has begun, for as long as there is a caller.
    ///
    /// When the caller gives up, the verb is dropped where it stands and makes no further cloud call.
    /// That is less than a crash, since what this process remembers stays: the repetition finds what was
    /// begun by its token, its tags or its state.
    pub(super) async fn change<T, F>(&self, guard: Guard, verb: F) -> Result<T, Status>
    where
        T: Send + 'static,
        F: Future<Output = disk::Result<T>> + Send + 'static,
    {
        let outcome = self.alone(guard, verb).await?;
        outcome.map_err(|error| status::of(&error))
    }

    /// The same, for who looks at a failure before it makes a status of it.
    pub(super) async fn alone<T, F>(&self, guard: Guard, verb: F) -> Result<disk::Result<T>, Status>
    where
        T: Send + 'static,
        F: Future<Output = disk::Result<T>> + Send + 'static,
    {
        // On the heap: a verb is large, and every handler would carry it.
        let verb = Box::pin(verb);
        let given_up = CancellationToken::new();
        let _caller = given_up.clone().drop_guard();
        let run = async move {
            let outcome = given_up.run_until_cancelled(verb).await;
            drop(guard);
            outcome
        };
        let outcome = self.tasks.run(run).await;
        outcome.ok_or_else(|| Status::aborted("the caller gave up"))
    }
}

#[tonic::async_trait]
impl Controller for Service {
    async fn create_volume(
        &self,
        request: Request<proto::CreateVolumeRequest>,
    ) -> Result<Response<proto::CreateVolumeResponse>, Status> {
        create::create(self, deadline::of(&request), limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn delete_volume(
        &self,
        request: Request<proto::DeleteVolumeRequest>,
    ) -> Result<Response<proto::DeleteVolumeResponse>, Status> {
        create::delete(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn controller_publish_volume(
        &self,
        request: Request<proto::ControllerPublishVolumeRequest>,
    ) -> Result<Response<proto::ControllerPublishVolumeResponse>, Status> {
        publish::publish(self, deadline::of(&request), limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<proto::ControllerUnpublishVolumeRequest>,
    ) -> Result<Response<proto::ControllerUnpublishVolumeResponse>, Status> {
        publish::unpublish(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<proto::ValidateVolumeCapabilitiesRequest>,
    ) -> Result<Response<proto::ValidateVolumeCapabilitiesResponse>, Status> {
        validate::validate(self, deadline::of(&request), limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn list_volumes(
        &self,
        request: Request<proto::ListVolumesRequest>,
    ) -> Result<Response<proto::ListVolumesResponse>, Status> {
        list::volumes(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<proto::ControllerGetCapabilitiesRequest>,
    ) -> Result<Response<proto::ControllerGetCapabilitiesResponse>, Status> {
        Ok(Response::new(answer::capabilities()))
    }

    async fn get_capacity(
        &self,
        request: Request<proto::GetCapacityRequest>,
    ) -> Result<Response<proto::GetCapacityResponse>, Status> {
        capacity::capacity(self, deadline::of(&request), limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn create_snapshot(
        &self,
        request: Request<proto::CreateSnapshotRequest>,
    ) -> Result<Response<proto::CreateSnapshotResponse>, Status> {
        snapshot::create(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn delete_snapshot(
        &self,
        request: Request<proto::DeleteSnapshotRequest>,
    ) -> Result<Response<proto::DeleteSnapshotResponse>, Status> {
        snapshot::delete(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn list_snapshots(
        &self,
        request: Request<proto::ListSnapshotsRequest>,
    ) -> Result<Response<proto::ListSnapshotsResponse>, Status> {
        list::snapshots(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn controller_modify_volume(
        &self,
        request: Request<proto::ControllerModifyVolumeRequest>,
    ) -> Result<Response<proto::ControllerModifyVolumeResponse>, Status> {
        modify::modify(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn controller_get_volume(
        &self,
        request: Request<proto::ControllerGetVolumeRequest>,
    ) -> Result<Response<proto::ControllerGetVolumeResponse>, Status> {
        health::volume(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn controller_get_volume_health(
        &self,
        request: Request<proto::ControllerGetVolumeHealthRequest>,
    ) -> Result<Response<proto::ControllerGetVolumeHealthResponse>, Status> {
        health::health(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn controller_list_volume_health(
        &self,
        request: Request<proto::ControllerListVolumeHealthRequest>,
    ) -> Result<Response<proto::ControllerListVolumeHealthResponse>, Status> {
        health::list(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn get_snapshot(
        &self,
        request: Request<proto::GetSnapshotRequest>,
    ) -> Result<Response<proto::GetSnapshotResponse>, Status> {
        snapshot::get(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn controller_expand_volume(
        &self,
        request: Request<proto::ControllerExpandVolumeRequest>,
    ) -> Result<Response<proto::ControllerExpandVolumeResponse>, Status> {
        expand::expand(self, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }
}
