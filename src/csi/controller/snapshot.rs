//! CreateSnapshot and DeleteSnapshot.

use std::sync::Arc;

use tonic::Status;

use super::operation::Operation;
use super::{Service, answer, zones};
use crate::base::Deadline;
use crate::csi::param::snapshot::SnapshotClass;
use crate::csi::{layer, proto, request, status};
use crate::disk::{NewSnapshot, Purpose};
use crate::model::{RegionId, SnapshotId};

pub(super) async fn create(
    service: &Service,
    deadline: Deadline,
    request: &proto::CreateSnapshotRequest,
) -> Result<proto::CreateSnapshotResponse, Status> {
    layer::about("snapshot.name", &request.name);
    layer::about("disk.id", &request.source_volume_id);
    request::required("source_volume_id", &request.source_volume_id)?;
    let name = request::name("name", &request.name)?;
    let class = SnapshotClass::read(&request.parameters)?;
    usable_in(
        &service.settings.region,
        request.accessibility_requirements.as_ref(),
    )?;
    let source = request::id("source_volume_id", &request.source_volume_id)?;
    let new = NewSnapshot {
        name,
        source,
        retention_days: class.retention_days,
        resource_group: class.resource_group,
        tags: class.tags,
        purpose: Purpose::Request,
    };
    let guard = service.begin(&Operation::CreateSnapshot(&new.name))?;
    let disks = Arc::clone(&service.disks);
    let made = service
        .change(guard, async move {
            disks.snapshotter.create(deadline, &new).await
        })
        .await?;
    Ok(proto::CreateSnapshotResponse {
        snapshot: Some(answer::snapshot(&made)),
    })
}

/// Whether volumes made of a snapshot in this region are accessible as required. They are in every zone
/// of the region, whose zones all begin with its name; one of the required topologies must be there.
fn usable_in(
    region: &RegionId,
    requirement: Option<&proto::TopologyRequirement>,
) -> Result<(), Status> {
    let Some(requirement) = requirement else {
        return Ok(());
    };
    let wanted = zones::of(requirement)?;
    let here = |zone: &crate::model::ZoneId| zone.as_str().starts_with(region.as_str());
    if wanted.is_empty() || wanted.iter().any(here) {
        return Ok(());
    }
    let wanted: Vec<_> = wanted.iter().map(crate::model::ZoneId::as_str).collect();
    Err(Status::resource_exhausted(format!(
        "the snapshot must be usable in {}: none of them is in region {region}, and snapshots are \
         usable only in their region",
        wanted.join(", ")
    )))
}

pub(super) async fn get(
    service: &Service,
    deadline: Deadline,
    request: &proto::GetSnapshotRequest,
) -> Result<proto::GetSnapshotResponse, Status> {
    layer::about("snapshot.id", &request.snapshot_id);
    let id: SnapshotId = request::id("snapshot_id", &request.snapshot_id)?;
    let row = service.disks.snapshotter.get(deadline, &id).await;
    let row = row.map_err(|error| status::of(&error))?;
    Ok(proto::GetSnapshotResponse {
        snapshot: Some(answer::snapshot(&row)),
    })
}

pub(super) async fn delete(
    service: &Service,
    deadline: Deadline,
    request: &proto::DeleteSnapshotRequest,
) -> Result<proto::DeleteSnapshotResponse, Status> {
    let id = request::required("snapshot_id", &request.snapshot_id)?;
    layer::about("snapshot.id", id);
    // What cannot be a snapshot is certainly gone.
    if let Ok(snapshot) = id.parse::<SnapshotId>() {
        let guard = service.begin(&Operation::DeleteSnapshot(&snapshot))?;
        let disks = Arc::clone(&service.disks);
        service
            .change(guard, async move {
                disks.snapshotter.delete(deadline, &snapshot).await
            })
            .await?;
        service.listings.deleted(id);
    }
    Ok(proto::DeleteSnapshotResponse {})
}
