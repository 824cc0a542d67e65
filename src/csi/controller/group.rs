//! The RPCs of the GroupController service, which shares locks, tasks and listings with the Controller service.

use tonic::{Request, Response};

use super::operation::LockedOperation;
use super::response;
use super::service::Service;
use crate::csi::proto::group_controller_server::GroupController;
use crate::csi::proto::group_controller_service_capability::rpc::Type;
use crate::csi::proto::group_controller_service_capability::{Rpc, Type as Capability};
use crate::csi::proto::*;
use crate::csi::request::{RpcResult, read, snapshot as request};
use crate::{csi::layer, disk};

#[tonic::async_trait]
impl GroupController for Service {
    async fn group_controller_get_capabilities(
        &self,
        _: Request<GroupControllerGetCapabilitiesRequest>,
    ) -> RpcResult<GroupControllerGetCapabilitiesResponse> {
        let rpc = Rpc {
            r#type: Type::CreateDeleteGetVolumeGroupSnapshot.into(),
        };
        let r#type = Some(Capability::Rpc(rpc));
        Ok(Response::new(GroupControllerGetCapabilitiesResponse {
            capabilities: vec![GroupControllerServiceCapability { r#type }],
        }))
    }

    async fn create_volume_group_snapshot(
        &self,
        request: Request<CreateVolumeGroupSnapshotRequest>,
    ) -> RpcResult<CreateVolumeGroupSnapshotResponse> {
        let (deadline, new) = read(&request, request::create_group)?;
        let locked = LockedOperation::on(format!("group snapshot {:?}", new.name));
        let create = self.run(locked, |disks| async move {
            disks.snapshotter.create_group(deadline, &new).await
        });
        let created = create.await??;
        layer::record("group.id", &created.id);
        let group_snapshot = Some(group(&created));
        Ok(Response::new(CreateVolumeGroupSnapshotResponse { group_snapshot }))
    }

    async fn delete_volume_group_snapshot(
        &self,
        request: Request<DeleteVolumeGroupSnapshotRequest>,
    ) -> RpcResult<DeleteVolumeGroupSnapshotResponse> {
        let (deadline, wanted) = read(&request, request::delete_group)?;
        // An ID that no group can have is already deleted.
        if let Some((group, members)) = wanted {
            let locked = LockedOperation::on(format!("group snapshot {group}"));
            let ids = members.clone();
            let delete = self.run(locked, |disks| async move {
                disks.snapshotter.delete_group(deadline, &group, &ids).await
            });
            delete.await??;
            members.iter().for_each(|id| self.listings.mark_deleted(id.as_str()));
        }
        Ok(Response::new(DeleteVolumeGroupSnapshotResponse {}))
    }

    async fn get_volume_group_snapshot(
        &self,
        request: Request<GetVolumeGroupSnapshotRequest>,
    ) -> RpcResult<GetVolumeGroupSnapshotResponse> {
        let (deadline, (id, members)) = read(&request, request::get_group)?;
        let found = self.disks.snapshotter.get_group(deadline, &id, &members).await?;
        let group_snapshot = Some(group(&found));
        Ok(Response::new(GetVolumeGroupSnapshotResponse { group_snapshot }))
    }
}

fn group(group: &disk::GroupSnapshot) -> VolumeGroupSnapshot {
    // A tag that was changed does not move a snapshot to another group.
    let member = |row| Snapshot {
        group_snapshot_id: group.id.to_string(),
        ..response::snapshot(row)
    };
    VolumeGroupSnapshot {
        group_snapshot_id: group.id.to_string(),
        snapshots: group.snapshots.iter().map(member).collect(),
        creation_time: Some(response::timestamp(group.created)),
        ready_to_use: group.is_ready(),
    }
}
