//! CreateVolumeGroupSnapshot, DeleteVolumeGroupSnapshot and GetVolumeGroupSnapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use tonic::Status;

use crate::csi::controller::operation::Operation;
use crate::csi::controller::{Service, answer};
use crate::csi::proto::group_controller_service_capability::rpc::Type;
use crate::csi::proto::group_controller_service_capability::{Rpc, Type as Capability};
use crate::csi::request::Call;
use crate::csi::{layer, proto};
use crate::disk::{Group, NewGroup};
use crate::model::{SnapshotGroupId, SnapshotId};

pub(super) fn capabilities() -> proto::GroupControllerGetCapabilitiesResponse {
    let rpc = Rpc {
        r#type: Type::CreateDeleteGetVolumeGroupSnapshot.into(),
    };
    proto::GroupControllerGetCapabilitiesResponse {
        capabilities: vec![proto::GroupControllerServiceCapability {
            r#type: Some(Capability::Rpc(rpc)),
        }],
    }
}

pub(super) async fn create(
    service: &Service,
    (deadline, new): Call<NewGroup>,
) -> Result<proto::CreateVolumeGroupSnapshotResponse, Status> {
    let guard = service.begin(&Operation::CreateGroupSnapshot(&new.name))?;
    let disks = Arc::clone(&service.disks);
    let verb = async move { disks.snapshotter.create_group(deadline, &new).await };
    let made = service.change(guard, verb).await?;
    layer::about("group.id", &made.id);
    Ok(proto::CreateVolumeGroupSnapshotResponse {
        group_snapshot: Some(group(&made)),
    })
}

pub(super) async fn delete(
    service: &Service,
    (deadline, asked): Call<Option<(SnapshotGroupId, BTreeSet<SnapshotId>)>>,
) -> Result<proto::DeleteVolumeGroupSnapshotResponse, Status> {
    // What cannot be a group is certainly gone.
    if let Some((group, members)) = asked {
        let guard = service.begin(&Operation::DeleteGroupSnapshot(&group))?;
        let disks = Arc::clone(&service.disks);
        let of = members.clone();
        let verb = async move { disks.snapshotter.delete_group(deadline, &group, &of).await };
        service.change(guard, verb).await?;
        for member in members {
            service.listings.deleted(member.as_str());
        }
    }
    Ok(proto::DeleteVolumeGroupSnapshotResponse {})
}

pub(super) async fn get(
    service: &Service,
    (deadline, (id, members)): Call<(SnapshotGroupId, BTreeSet<SnapshotId>)>,
) -> Result<proto::GetVolumeGroupSnapshotResponse, Status> {
    let snapshotter = &service.disks.snapshotter;
    let found = snapshotter.group(deadline, &id, &members).await?;
    Ok(proto::GetVolumeGroupSnapshotResponse {
        group_snapshot: Some(group(&found)),
    })
}

fn group(group: &Group) -> proto::VolumeGroupSnapshot {
    proto::VolumeGroupSnapshot {
        group_snapshot_id: group.id.to_string(),
        snapshots: group.snapshots.iter().map(answer::snapshot).collect(),
        creation_time: Some(prost_types::Timestamp {
            seconds: group.created.as_second(),
            nanos: group.created.subsec_nanosecond(),
        }),
        ready_to_use: group.is_ready(),
    }
}
