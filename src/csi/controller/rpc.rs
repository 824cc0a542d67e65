//! The RPCs of the Controller and GroupController services: how each request is parsed, and what handles it. The
//! services share locks, tasks and listings.

use tonic::{Request, Response, Status};

use super::service::Service;
use super::{list, publish, response, snapshot, validate, volume};
use crate::csi::proto;
use crate::csi::proto::controller_server::Controller;
use crate::csi::proto::group_controller_server::GroupController;
use crate::csi::request::{self, field};

/// Each RPC: its messages, the parser of the request `=>` the handler. `$service` is the service in both.
macro_rules! rpcs {
    ($(#[$attribute:meta] impl $api:ident for Service as $service:ident {
        $(async fn $rpc:ident($request:ident) -> $response:ident { $parse:expr => $handle:path })*
    })*) => {$(
        #[$attribute]
        impl $api for Service {
            $(async fn $rpc(&self, request: Request<proto::$request>) -> Result<Response<proto::$response>, Status> {
                let $service = self;
                let call = request::read(&request, $parse)?;
                $handle($service, call).await.map(Response::new)
            })*
        }
    )*};
}

rpcs! {
    #[tonic::async_trait]
    impl Controller for Service as service {
        async fn create_volume(CreateVolumeRequest) -> CreateVolumeResponse {
            |message| request::create_volume::create(message, &service.location) => volume::create
        }

        async fn delete_volume(DeleteVolumeRequest) -> DeleteVolumeResponse {
            |message| field::id_to_remove("volume_id", &message.volume_id) => volume::delete
        }

        async fn controller_publish_volume(ControllerPublishVolumeRequest) -> ControllerPublishVolumeResponse {
            request::volume::publish => publish::publish
        }

        async fn controller_unpublish_volume(ControllerUnpublishVolumeRequest) -> ControllerUnpublishVolumeResponse {
            request::volume::unpublish => publish::unpublish
        }

        async fn validate_volume_capabilities(
            ValidateVolumeCapabilitiesRequest
        ) -> ValidateVolumeCapabilitiesResponse {
            request::validate::validate => validate::validate
        }

        async fn list_volumes(ListVolumesRequest) -> ListVolumesResponse {
            |message| request::page::page(message.max_entries, &message.starting_token) => list::volumes
        }

        async fn controller_get_capabilities(ControllerGetCapabilitiesRequest) -> ControllerGetCapabilitiesResponse {
            |_| Ok(()) => response::capabilities
        }

        async fn get_capacity(GetCapacityRequest) -> GetCapacityResponse {
            |message| request::create_volume::capacity(message, &service.location) => volume::capacity
        }

        async fn create_snapshot(CreateSnapshotRequest) -> CreateSnapshotResponse {
            |message| request::snapshot::create(message, &service.location) => snapshot::create
        }

        async fn delete_snapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse {
            |message| field::id_to_remove("snapshot_id", &message.snapshot_id) => snapshot::delete
        }

        async fn list_snapshots(ListSnapshotsRequest) -> ListSnapshotsResponse {
            request::snapshot::list => list::snapshots
        }

        async fn controller_modify_volume(ControllerModifyVolumeRequest) -> ControllerModifyVolumeResponse {
            request::volume::modify => volume::modify
        }

        async fn controller_get_volume(ControllerGetVolumeRequest) -> ControllerGetVolumeResponse {
            |message| field::id("volume_id", &message.volume_id) => volume::get
        }

        async fn controller_get_volume_health(ControllerGetVolumeHealthRequest) -> ControllerGetVolumeHealthResponse {
            |message| field::id("volume_id", &message.volume_id) => volume::health
        }

        async fn controller_list_volume_health(
            ControllerListVolumeHealthRequest
        ) -> ControllerListVolumeHealthResponse {
            |message| request::page::page(message.max_entries, &message.starting_token) => list::health
        }

        async fn get_snapshot(GetSnapshotRequest) -> GetSnapshotResponse {
            |message| field::id("snapshot_id", &message.snapshot_id) => snapshot::get
        }

        async fn controller_expand_volume(ControllerExpandVolumeRequest) -> ControllerExpandVolumeResponse {
            request::volume::expand => volume::expand
        }
    }

    #[tonic::async_trait]
    impl GroupController for Service as service {
        async fn group_controller_get_capabilities(
            GroupControllerGetCapabilitiesRequest
        ) -> GroupControllerGetCapabilitiesResponse {
            |_| Ok(()) => snapshot::group_capabilities
        }

        async fn create_volume_group_snapshot(
            CreateVolumeGroupSnapshotRequest
        ) -> CreateVolumeGroupSnapshotResponse {
            request::snapshot::create_group => snapshot::create_group
        }

        async fn delete_volume_group_snapshot(
            DeleteVolumeGroupSnapshotRequest
        ) -> DeleteVolumeGroupSnapshotResponse {
            request::snapshot::delete_group => snapshot::delete_group
        }

        async fn get_volume_group_snapshot(GetVolumeGroupSnapshotRequest) -> GetVolumeGroupSnapshotResponse {
            request::snapshot::get_group => snapshot::get_group
        }
    }
}
