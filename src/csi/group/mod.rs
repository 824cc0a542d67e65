//! The CSI GroupController service: crash-consistent snapshots of several volumes.

use tonic::{Request, Response, Status};

use super::proto::group_controller_server::GroupController;
use super::{controller, proto, request};

mod snapshot;

/// Shares locks and tasks with the Controller service.
#[derive(Debug, Clone)]
pub struct Service(controller::Service);

impl Service {
    #[must_use]
    pub fn new(controller: controller::Service) -> Self {
        Self(controller)
    }
}

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl GroupController for Service {
    async fn group_controller_get_capabilities(
        &self,
        _: Request<proto::GroupControllerGetCapabilitiesRequest>,
    ) -> RpcResult<proto::GroupControllerGetCapabilitiesResponse> {
        Ok(Response::new(snapshot::capabilities()))
    }

    async fn create_volume_group_snapshot(
        &self,
        request: Request<proto::CreateVolumeGroupSnapshotRequest>,
    ) -> RpcResult<proto::CreateVolumeGroupSnapshotResponse> {
        let call = request::read(&request, request::snapshot::create_group)?;
        snapshot::create(&self.0, call).await.map(Response::new)
    }

    async fn delete_volume_group_snapshot(
        &self,
        request: Request<proto::DeleteVolumeGroupSnapshotRequest>,
    ) -> RpcResult<proto::DeleteVolumeGroupSnapshotResponse> {
        let call = request::read(&request, request::snapshot::delete_group)?;
        snapshot::delete(&self.0, call).await.map(Response::new)
    }

    async fn get_volume_group_snapshot(
        &self,
        request: Request<proto::GetVolumeGroupSnapshotRequest>,
    ) -> RpcResult<proto::GetVolumeGroupSnapshotResponse> {
        let call = request::read(&request, request::snapshot::get_group)?;
        snapshot::get(&self.0, call).await.map(Response::new)
    }
}
