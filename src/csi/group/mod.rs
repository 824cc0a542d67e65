//! The CSI GroupController service: snapshots of several volumes at one instant.

use tonic::{Request, Response, Status};

use super::proto::group_controller_server::GroupController;
use super::{controller, deadline, limits, proto};

mod snapshot;

/// The service. It shares locks and tasks with the Controller service, of which it is a part for the
/// orchestrator.
#[derive(Debug, Clone)]
pub struct Service(controller::Service);

impl Service {
    /// The group side of this controller.
    #[must_use]
    pub fn of(controller: controller::Service) -> Self {
        Self(controller)
    }
}

#[tonic::async_trait]
impl GroupController for Service {
    async fn group_controller_get_capabilities(
        &self,
        _: Request<proto::GroupControllerGetCapabilitiesRequest>,
    ) -> Result<Response<proto::GroupControllerGetCapabilitiesResponse>, Status> {
        Ok(Response::new(snapshot::capabilities()))
    }

    async fn create_volume_group_snapshot(
        &self,
        request: Request<proto::CreateVolumeGroupSnapshotRequest>,
    ) -> Result<Response<proto::CreateVolumeGroupSnapshotResponse>, Status> {
        snapshot::create(&self.0, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn delete_volume_group_snapshot(
        &self,
        request: Request<proto::DeleteVolumeGroupSnapshotRequest>,
    ) -> Result<Response<proto::DeleteVolumeGroupSnapshotResponse>, Status> {
        snapshot::delete(&self.0, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }

    async fn get_volume_group_snapshot(
        &self,
        request: Request<proto::GetVolumeGroupSnapshotRequest>,
    ) -> Result<Response<proto::GetVolumeGroupSnapshotResponse>, Status> {
        snapshot::get(&self.0, deadline::of(&request), &limits::fit(request)?)
            .await
            .map(Response::new)
    }
}
