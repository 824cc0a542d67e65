//! The CSI Controller service: has requests parsed, calls the verbs, writes answers.

use std::future::Future;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use self::operation::Operation;
use self::paging::Listings;
use super::proto::controller_server::Controller;
pub use super::request::Settings;
use super::{proto, request, status};
use crate::base::{Guard, KeyedLocks, Tasks};
use crate::cluster::events::Events;
use crate::disk::{self, DiskServices};

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
        Ok(self.alone(guard, verb).await??)
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

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Controller for Service {
    async fn create_volume(
        &self,
        request: Request<proto::CreateVolumeRequest>,
    ) -> Answer<proto::CreateVolumeResponse> {
        let call = request::read(&request, |message| {
            request::create_volume::create(message, &self.settings)
        })?;
        create::create(self, call).await.map(Response::new)
    }

    async fn delete_volume(
        &self,
        request: Request<proto::DeleteVolumeRequest>,
    ) -> Answer<proto::DeleteVolumeResponse> {
        let call = request::read(&request, request::volume::delete)?;
        create::delete(self, call).await.map(Response::new)
    }

    async fn controller_publish_volume(
        &self,
        request: Request<proto::ControllerPublishVolumeRequest>,
    ) -> Answer<proto::ControllerPublishVolumeResponse> {
        let call = request::read(&request, request::publish::publish)?;
        publish::publish(self, call).await.map(Response::new)
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<proto::ControllerUnpublishVolumeRequest>,
    ) -> Answer<proto::ControllerUnpublishVolumeResponse> {
        let call = request::read(&request, request::publish::unpublish)?;
        publish::unpublish(self, call).await.map(Response::new)
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<proto::ValidateVolumeCapabilitiesRequest>,
    ) -> Answer<proto::ValidateVolumeCapabilitiesResponse> {
        let call = request::read(&request, request::validate::validate)?;
        validate::validate(self, call).await.map(Response::new)
    }

    async fn list_volumes(
        &self,
        request: Request<proto::ListVolumesRequest>,
    ) -> Answer<proto::ListVolumesResponse> {
        let call = request::read(&request, request::page::volumes)?;
        list::volumes(self, call).await.map(Response::new)
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<proto::ControllerGetCapabilitiesRequest>,
    ) -> Answer<proto::ControllerGetCapabilitiesResponse> {
        Ok(Response::new(answer::capabilities()))
    }

    async fn get_capacity(
        &self,
        request: Request<proto::GetCapacityRequest>,
    ) -> Answer<proto::GetCapacityResponse> {
        let call = request::read(&request, |message| {
            request::create_volume::capacity(message, &self.settings)
        })?;
        capacity::capacity(self, call).await.map(Response::new)
    }

    async fn create_snapshot(
        &self,
        request: Request<proto::CreateSnapshotRequest>,
    ) -> Answer<proto::CreateSnapshotResponse> {
        let call = request::read(&request, |message| {
            request::snapshot::create(message, &self.settings)
        })?;
        snapshot::create(self, call).await.map(Response::new)
    }

    async fn delete_snapshot(
        &self,
        request: Request<proto::DeleteSnapshotRequest>,
    ) -> Answer<proto::DeleteSnapshotResponse> {
        let call = request::read(&request, request::snapshot::delete)?;
        snapshot::delete(self, call).await.map(Response::new)
    }

    async fn list_snapshots(
        &self,
        request: Request<proto::ListSnapshotsRequest>,
    ) -> Answer<proto::ListSnapshotsResponse> {
        let call = request::read(&request, request::snapshot::list)?;
        list::snapshots(self, call).await.map(Response::new)
    }

    async fn controller_modify_volume(
        &self,
        request: Request<proto::ControllerModifyVolumeRequest>,
    ) -> Answer<proto::ControllerModifyVolumeResponse> {
        let call = request::read(&request, request::volume::modify)?;
        modify::modify(self, call).await.map(Response::new)
    }

    async fn controller_get_volume(
        &self,
        request: Request<proto::ControllerGetVolumeRequest>,
    ) -> Answer<proto::ControllerGetVolumeResponse> {
        let call = request::read(&request, request::volume::get)?;
        health::volume(self, call).await.map(Response::new)
    }

    async fn controller_get_volume_health(
        &self,
        request: Request<proto::ControllerGetVolumeHealthRequest>,
    ) -> Answer<proto::ControllerGetVolumeHealthResponse> {
        let call = request::read(&request, request::volume::health)?;
        health::health(self, call).await.map(Response::new)
    }

    async fn controller_list_volume_health(
        &self,
        request: Request<proto::ControllerListVolumeHealthRequest>,
    ) -> Answer<proto::ControllerListVolumeHealthResponse> {
        let call = request::read(&request, request::page::health)?;
        health::list(self, call).await.map(Response::new)
    }

    async fn get_snapshot(
        &self,
        request: Request<proto::GetSnapshotRequest>,
    ) -> Answer<proto::GetSnapshotResponse> {
        let call = request::read(&request, request::snapshot::get)?;
        snapshot::get(self, call).await.map(Response::new)
    }

    async fn controller_expand_volume(
        &self,
        request: Request<proto::ControllerExpandVolumeRequest>,
    ) -> Answer<proto::ControllerExpandVolumeResponse> {
        let call = request::read(&request, request::volume::expand)?;
        expand::expand(self, call).await.map(Response::new)
    }
}
