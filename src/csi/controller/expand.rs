//! ControllerExpandVolume.

use std::sync::Arc;

use tonic::Status;

use super::operation::LockedOperation;
use super::service::Service;
use crate::csi::request::Call;
use crate::csi::request::volume::Expand;
use crate::csi::{proto, status};

pub(super) async fn expand(
    service: &Service,
    (deadline, Expand { disk, size, block }): Call<Expand>,
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
