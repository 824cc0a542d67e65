//! CreateVolumeGroupSnapshot, DeleteVolumeGroupSnapshot and GetVolumeGroupSnapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use tonic::Status;

use crate::base::Deadline;
use crate::csi::controller::operation::Operation;
use crate::csi::controller::{Service, answer};
use crate::csi::param::snapshot::SnapshotClass;
use crate::csi::proto::group_controller_service_capability::rpc::Type;
use crate::csi::proto::group_controller_service_capability::{Rpc, Type as Capability};
use crate::csi::{layer, proto, request, status};
use crate::disk::{Group, NewGroup};
use crate::model::{DiskId, InvalidId, SnapshotGroupId, SnapshotId};

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
    deadline: Deadline,
    request: &proto::CreateVolumeGroupSnapshotRequest,
) -> Result<proto::CreateVolumeGroupSnapshotResponse, Status> {
    layer::about("group.name", &request.name);
    let name = request::name("name", &request.name)?;
    let class = SnapshotClass::read_of_group(&request.parameters)?;
    let new = NewGroup {
        name,
        sources: sources(&request.source_volume_ids)?,
        resource_group: class.resource_group,
        tags: class.tags,
    };
    let guard = service.begin(&Operation::CreateGroupSnapshot(&new.name))?;
    let disks = Arc::clone(&service.disks);
    let made = service
        .change(guard, async move {
            disks.snapshotter.create_group(deadline, &new).await
        })
        .await?;
    layer::about("group.id", &made.id);
    Ok(proto::CreateVolumeGroupSnapshotResponse {
        group_snapshot: Some(group(&made)),
    })
}

pub(super) async fn delete(
    service: &Service,
    deadline: Deadline,
    request: &proto::DeleteVolumeGroupSnapshotRequest,
) -> Result<proto::DeleteVolumeGroupSnapshotResponse, Status> {
    let id = request::required("group_snapshot_id", &request.group_snapshot_id)?;
    layer::about("group.id", id);
    // What cannot be a group is certainly gone.
    if let Ok(group) = id.parse::<SnapshotGroupId>() {
        let members = members(&request.snapshot_ids)?;
        let guard = service.begin(&Operation::DeleteGroupSnapshot(&group))?;
        let disks = Arc::clone(&service.disks);
        service
            .change(guard, async move {
                disks
                    .snapshotter
                    .delete_group(deadline, &group, &members)
                    .await
            })
            .await?;
        for member in &request.snapshot_ids {
            service.listings.deleted(member);
        }
    }
    Ok(proto::DeleteVolumeGroupSnapshotResponse {})
}

pub(super) async fn get(
    service: &Service,
    deadline: Deadline,
    request: &proto::GetVolumeGroupSnapshotRequest,
) -> Result<proto::GetVolumeGroupSnapshotResponse, Status> {
    layer::about("group.id", &request.group_snapshot_id);
    let id: SnapshotGroupId = request::id("group_snapshot_id", &request.group_snapshot_id)?;
    let members = members(&request.snapshot_ids)?;
    let found = service
        .disks
        .snapshotter
        .group(deadline, &id, &members)
        .await;
    let found = found.map_err(|error| status::of(&error))?;
    Ok(proto::GetVolumeGroupSnapshotResponse {
        group_snapshot: Some(group(&found)),
    })
}

fn sources(ids: &[String]) -> Result<BTreeSet<DiskId>, Status> {
    if ids.is_empty() {
        return Err(Status::invalid_argument(
            "source_volume_ids is required and empty",
        ));
    }
    let mut sources = BTreeSet::new();
    for id in ids {
        let disk: DiskId = request::id("source_volume_ids", id)?;
        if !sources.insert(disk) {
            return Err(Status::invalid_argument(format!(
                "source_volume_ids names {id:?} twice"
            )));
        }
    }
    Ok(sources)
}

/// What the caller takes for the members. What cannot be a snapshot's id is in no group.
fn members(ids: &[String]) -> Result<BTreeSet<SnapshotId>, Status> {
    let parse = |id: &String| {
        id.parse().map_err(|invalid: InvalidId| {
            Status::invalid_argument(format!("snapshot_ids: {invalid}"))
        })
    };
    ids.iter().map(parse).collect()
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
