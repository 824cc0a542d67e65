use std::collections::BTreeSet;

use tonic::Status;

use super::operation::LockedOperation;
use super::response;
use super::service::Service;
use crate::csi::proto::group_controller_service_capability::rpc::Type;
use crate::csi::proto::group_controller_service_capability::{Rpc, Type as Capability};
use crate::csi::request::ParsedCall;
use crate::csi::{layer, proto};
use crate::disk::{GroupSnapshot, NewGroupSnapshot, NewSnapshot};
use crate::model::{SnapshotGroupId, SnapshotId};

pub(super) async fn create(
    service: &Service,
    (deadline, new): ParsedCall<NewSnapshot>,
) -> Result<proto::CreateSnapshotResponse, Status> {
    let locked = LockedOperation::on(format!("snapshot {:?}", new.name));
    let create = service.run(
        locked,
        |disks| async move { disks.snapshotter.create(deadline, &new).await },
    );
    let snapshot = Some(response::snapshot(&create.await??));
    Ok(proto::CreateSnapshotResponse { snapshot })
}

pub(super) async fn get(
    service: &Service,
    (deadline, id): ParsedCall<SnapshotId>,
) -> Result<proto::GetSnapshotResponse, Status> {
    let snapshot = service.disks.snapshotter.get(deadline, &id).await?;
    let snapshot = Some(response::snapshot(&snapshot));
    Ok(proto::GetSnapshotResponse { snapshot })
}

pub(super) async fn delete(
    service: &Service,
    (deadline, snapshot): ParsedCall<Option<SnapshotId>>,
) -> Result<proto::DeleteSnapshotResponse, Status> {
    // An ID that no snapshot can have is already deleted.
    if let Some(snapshot) = snapshot {
        let (locked, id) = (LockedOperation::on(format!("snapshot {snapshot}")), snapshot.clone());
        let delete = service.run(
            locked,
            |disks| async move { disks.snapshotter.delete(deadline, &id).await },
        );
        delete.await??;
        service.listings.mark_deleted(snapshot.as_str());
    }
    Ok(proto::DeleteSnapshotResponse {})
}

pub(super) async fn group_capabilities(
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

pub(super) async fn create_group(
    service: &Service,
    (deadline, new): ParsedCall<NewGroupSnapshot>,
) -> Result<proto::CreateVolumeGroupSnapshotResponse, Status> {
    let locked = LockedOperation::on(format!("group snapshot {:?}", new.name));
    let create = service.run(locked, |disks| async move {
        disks.snapshotter.create_group(deadline, &new).await
    });
    let created = create.await??;
    layer::record("group.id", &created.id);
    let group_snapshot = Some(group(&created));
    Ok(proto::CreateVolumeGroupSnapshotResponse { group_snapshot })
}

pub(super) async fn delete_group(
    service: &Service,
    (deadline, request): ParsedCall<Option<(SnapshotGroupId, BTreeSet<SnapshotId>)>>,
) -> Result<proto::DeleteVolumeGroupSnapshotResponse, Status> {
    // An ID that no group can have is already deleted.
    if let Some((group, members)) = request {
        let locked = LockedOperation::on(format!("group snapshot {group}"));
        let ids = members.clone();
        let delete = service.run(locked, |disks| async move {
            disks.snapshotter.delete_group(deadline, &group, &ids).await
        });
        delete.await??;
        for member in members {
            service.listings.mark_deleted(member.as_str());
        }
    }
    Ok(proto::DeleteVolumeGroupSnapshotResponse {})
}

pub(super) async fn get_group(
    service: &Service,
    (deadline, (id, members)): ParsedCall<(SnapshotGroupId, BTreeSet<SnapshotId>)>,
) -> Result<proto::GetVolumeGroupSnapshotResponse, Status> {
    let snapshotter = &service.disks.snapshotter;
    let found = snapshotter.get_group(deadline, &id, &members).await?;
    let group_snapshot = Some(group(&found));
    Ok(proto::GetVolumeGroupSnapshotResponse { group_snapshot })
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
        creation_time: Some(response::timestamp(group.created)),
        ready_to_use: group.is_ready(),
    }
}
