//! The controller as provisioner and attacher call it, each over its own connection.

use async_trait::async_trait;
use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::{
    ControllerPublishVolumeRequest, ControllerPublishVolumeResponse, ControllerUnpublishVolumeRequest,
    ControllerUnpublishVolumeResponse, CreateVolumeRequest, CreateVolumeResponse, DeleteVolumeRequest,
    DeleteVolumeResponse,
};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

#[derive(Debug, Clone)]
pub(crate) struct Remote {
    pub(crate) provisioner: ControllerClient<Channel>,
    pub(crate) attacher: ControllerClient<Channel>,
}

#[async_trait]
impl Controller for Remote {
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        self.provisioner.clone().create_volume(request).await
    }

    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        self.provisioner.clone().delete_volume(request).await
    }

    async fn controller_publish_volume(
        &self,
        request: Request<ControllerPublishVolumeRequest>,
    ) -> Result<Response<ControllerPublishVolumeResponse>, Status> {
        self.attacher.clone().controller_publish_volume(request).await
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<ControllerUnpublishVolumeRequest>,
    ) -> Result<Response<ControllerUnpublishVolumeResponse>, Status> {
        self.attacher.clone().controller_unpublish_volume(request).await
    }
}
