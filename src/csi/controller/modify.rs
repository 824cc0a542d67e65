//! ControllerModifyVolume.

use std::sync::Arc;

use tonic::Status;

use super::Service;
use super::operation::Operation;
use crate::base::Deadline;
use crate::csi::param::mutable;
use crate::csi::{layer, proto, request};
use crate::model::DiskId;

pub(super) async fn modify(
    service: &Service,
    deadline: Deadline,
    request: &proto::ControllerModifyVolumeRequest,
) -> Result<proto::ControllerModifyVolumeResponse, Status> {
    let id = request::required("volume_id", &request.volume_id)?;
    let change = mutable::read(&request.mutable_parameters)?;
    layer::about("disk.id", id);
    let disk: DiskId = request::id("volume_id", id)?;
    let guard = service.begin(&Operation::Modify(&disk))?;
    let disks = Arc::clone(&service.disks);
    let verb = async move { disks.modifier.modify(deadline, &disk, &change).await };
    service.change(guard, verb).await?;
    Ok(proto::ControllerModifyVolumeResponse {})
}
