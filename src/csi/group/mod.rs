//! The CSI GroupController service: snapshots of several volumes at one instant.

use tonic::{Request, Response, Status};

use super::proto::group_controller_server::GroupController;
use super::{controller, proto, request};

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

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl GroupController for Service {
    async fn group_controller_get_capabilities(
        &self,
        _: Request<proto::GroupControllerGetCapabilitiesRequest>,
    ) -> Answer<proto::GroupControllerGetCapabilitiesResponse> {
        Ok(Response::new(snapshot::capabilities()))
    }

    async fn create_volume_group_snapshot(
        &self,
        request: Request<proto::CreateVolumeGroupSnapshotRequest>,
    ) -> Answer<proto::CreateVolumeGroupSnapshotResponse> {
        let call = request::read(&request, request::snapshot::create_group)?;
        snapshot::create(&self.0, call).await.map(Response::new)
    }

    async fn delete_volume_group_snapshot(
        &self,
        request: Request<proto::DeleteVolumeGroupSnapshotRequest>,
    ) -> Answer<proto::DeleteVolumeGroupSnapshotResponse> {
        let call = request::read(&request, request::snapshot::delete_group)?;
        snapshot::delete(&self.0, call).await.map(Response::new)
    }

    async fn get_volume_group_snapshot(
        &self,
        request: Request<proto::GetVolumeGroupSnapshotRequest>,
    ) -> Answer<proto::GetVolumeGroupSnapshotResponse> {
        let call = request::read(&request, request::snapshot::get_group)?;
        snapshot::get(&self.0, call).await.map(Response::new)
    }
}
