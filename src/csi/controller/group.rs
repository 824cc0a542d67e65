//! The GroupController service, crash-consistent snapshots of several volumes: CreateVolumeGroupSnapshot,
//! DeleteVolumeGroupSnapshot and GetVolumeGroupSnapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use tonic::Status;

use super::operation::LockedOperation;
use super::response;
use super::service::Service;
use crate::csi::proto::group_controller_service_capability::rpc::Type;
use crate::csi::proto::group_controller_service_capability::{Rpc, Type as Capability};
use crate::csi::request::ParsedCall;
use crate::csi::{layer, proto};
use crate::disk::{GroupSnapshot, NewGroupSnapshot};
use crate::model::{SnapshotGroupId, SnapshotId};

pub(super) async fn capabilities(
    _: &Service,
    _: ParsedCall<()>,
) -> Result<proto::GroupControllerGetCapabilitiesResponse, Status> {
    let rpc = Rpc {
        r#type: Type::CreateDeleteGetVolumeGroupSnapshot.into(),
    };
    let r#type = Some(Capability::Rpc(rpc));
    Ok(proto::GroupControllerGetCapabilitiesResponse {
        capabilities: vec![proto::GroupControllerServiceCapability { r#type }],
    })
}

pub(super) async fn create(
    service: &Service,
    (deadline, new): ParsedCall<NewGroupSnapshot>,
) -> Result<proto::CreateVolumeGroupSnapshotResponse, Status> {
    let guard = service.begin(&LockedOperation::CreateGroupSnapshot(&new.name))?;
    let disks = Arc::clone(&service.disks);
    let operation = async move { disks.snapshotter.create_group(deadline, &new).await };
    let created = service.run(guard, operation).await?;
    layer::record("group.id", &created.id);
    Ok(proto::CreateVolumeGroupSnapshotResponse {
        group_snapshot: Some(group(&created)),
    })
}

pub(super) async fn delete(
    service: &Service,
    (deadline, request): ParsedCall<Option<(SnapshotGroupId, BTreeSet<SnapshotId>)>>,
) -> Result<proto::DeleteVolumeGroupSnapshotResponse, Status> {
    // An ID that no group can have is already deleted.
    if let Some((group, members)) = request {
        let guard = service.begin(&LockedOperation::DeleteGroupSnapshot(&group))?;
        let disks = Arc::clone(&service.disks);
        let snapshots = members.clone();
        let operation = async move { disks.snapshotter.delete_group(deadline, &group, &snapshots).await };
        service.run(guard, operation).await?;
        for member in members {
            service.listings.mark_deleted(member.as_str());
        }
    }
    Ok(proto::DeleteVolumeGroupSnapshotResponse {})
}

pub(super) async fn get(
    service: &Service,
    (deadline, (id, members)): ParsedCall<(SnapshotGroupId, BTreeSet<SnapshotId>)>,
) -> Result<proto::GetVolumeGroupSnapshotResponse, Status> {
    let snapshotter = &service.disks.snapshotter;
    let found = snapshotter.get_group(deadline, &id, &members).await?;
    Ok(proto::GetVolumeGroupSnapshotResponse {
        group_snapshot: Some(group(&found)),
    })
}

fn group(group: &GroupSnapshot) -> proto::VolumeGroupSnapshot {
    // A tag that was changed does not move a snapshot to another group.
    let member = |row| proto::Snapshot {
        group_snapshot_id: group.id.to_string(),
        ..response::snapshot(row)
    };
    proto::VolumeGroupSnapshot {
        group_snapshot_id: group.id.to_string(),
        snapshots: group.snapshots.iter().map(member).collect(),
        creation_time: Some(prost_types::Timestamp {
            seconds: group.created.as_second(),
            nanos: group.created.subsec_nanosecond(),
        }),
        ready_to_use: group.is_ready(),
    }
}
