//! ControllerExpandVolume and ControllerModifyVolume.

use std::sync::Arc;

use tonic::Status;

use super::operation::LockedOperation;
use super::service::Service;
use crate::csi::request::ParsedCall;
use crate::csi::request::volume::{Expand, Modify};
use crate::csi::{proto, status};

pub(super) async fn expand(
    service: &Service,
    (deadline, Expand { disk, size, block }): ParsedCall<Expand>,
) -> Result<proto::ControllerExpandVolumeResponse, Status> {
    let guard = service.begin(&LockedOperation::Expand(&disk))?;
    let disks = Arc::clone(&service.disks);
    let operation = async move { disks.resizer.resize(deadline, &disk, size).await };
    let disk = service.try_run(guard, operation).await?;
    let disk = disk.map_err(|error| status::for_expansion(&error))?;
    Ok(proto::ControllerExpandVolumeResponse {
        capacity_bytes: disk.size.bytes().to_i64(),
        node_expansion_required: !block,
    })
}

pub(super) async fn modify(
    service: &Service,
    (deadline, Modify { disk, change }): ParsedCall<Modify>,
) -> Result<proto::ControllerModifyVolumeResponse, Status> {
    let guard = service.begin(&LockedOperation::Modify(&disk))?;
    let disks = Arc::clone(&service.disks);
    if let Some(to) = &change.category
        && !service.node_categories.is_empty()
    {
        let row = disks.inventory.disk(deadline, &disk).await?;
        service.node_categories.check(&row, to)?;
    }
    let operation = async move { disks.modifier.modify(deadline, &disk, &change).await };
    service.run(guard, operation).await?;
    Ok(proto::ControllerModifyVolumeResponse {})
}
