//! ControllerExpandVolume.

use std::sync::Arc;

use tonic::Status;

use super::Service;
use super::operation::Operation;
use crate::base::Deadline;
use crate::csi::proto::volume_capability::AccessType;
use crate::csi::{capability, layer, proto, request, status};
use crate::model::{DiskId, SizeRange};

pub(super) async fn expand(
    service: &Service,
    deadline: Deadline,
    request: &proto::ControllerExpandVolumeRequest,
) -> Result<proto::ControllerExpandVolumeResponse, Status> {
    let id = request::required("volume_id", &request.volume_id)?;
    if request.capacity_range.is_none() {
        return Err(Status::invalid_argument(
            "capacity_range is required and missing",
        ));
    }
    let size = request::size_range(request.capacity_range.as_ref())?;
    if size == SizeRange::default() {
        return Err(Status::invalid_argument(
            "capacity_range has neither required_bytes nor limit_bytes",
        ));
    }
    if let Some(capability) = &request.volume_capability {
        capability::check(Some(capability)).map_err(|e| request::invalid(&e))?;
    }
    layer::about("disk.id", id);
    let disk: DiskId = request::id("volume_id", id)?;
    let guard = service.begin(&Operation::Expand(&disk))?;
    let disks = Arc::clone(&service.disks);
    let row = service
        .alone(guard, async move {
            disks.resizer.resize(deadline, &disk, size).await
        })
        .await?
        .map_err(|error| status::of_growth(&error))?;
    let access = request
        .volume_capability
        .as_ref()
        .and_then(|c| c.access_type.as_ref());
    Ok(proto::ControllerExpandVolumeResponse {
        capacity_bytes: row.size.bytes().to_i64(),
        // A raw block volume has no filesystem that would have to grow.
        node_expansion_required: !matches!(access, Some(AccessType::Block(_))),
    })
}
