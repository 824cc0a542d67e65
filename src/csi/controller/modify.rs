//! ControllerModifyVolume.

use std::sync::Arc;

use tonic::Status;

use super::operation::LockedOperation;
use super::service::Service;
use crate::csi::proto;
use crate::csi::request::Call;
use crate::csi::request::volume::Modify;

pub(super) async fn modify(
    service: &Service,
    (deadline, Modify { disk, change }): Call<Modify>,
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
