//! ControllerExpandVolume.

use std::sync::Arc;

use tonic::Status;

use super::Service;
use super::operation::Operation;
use crate::csi::request::Call;
use crate::csi::request::volume::Expand;
use crate::csi::{proto, status};

pub(super) async fn expand(
    service: &Service,
    (deadline, Expand { disk, size, block }): Call<Expand>,
) -> Result<proto::ControllerExpandVolumeResponse, Status> {
    let guard = service.begin(&Operation::Expand(&disk))?;
    let disks = Arc::clone(&service.disks);
    let verb = async move { disks.resizer.resize(deadline, &disk, size).await };
    let row = service.alone(guard, verb).await?;
    let row = row.map_err(|error| status::of_growth(&error))?;
    Ok(proto::ControllerExpandVolumeResponse {
        capacity_bytes: row.size.bytes().to_i64(),
        node_expansion_required: !block,
    })
}
