//! ValidateVolumeCapabilities.

use tonic::Status;

use super::Service;
use crate::base::Deadline;
use crate::csi::param::{Class, mutable};
use crate::csi::proto::validate_volume_capabilities_response::Confirmed;
use crate::csi::{capability, proto, request, status};
use crate::model::DiskId;

pub(super) async fn validate(
    service: &Service,
    deadline: Deadline,
    request: proto::ValidateVolumeCapabilitiesRequest,
) -> Result<proto::ValidateVolumeCapabilitiesResponse, Status> {
    request::required("volume_id", &request.volume_id)?;
    if request.volume_capabilities.is_empty() {
        return Err(Status::invalid_argument(
            "volume_capabilities is required and empty",
        ));
    }
    let disk: DiskId = request::id("volume_id", &request.volume_id)?;
    service
        .disks
        .disk(deadline, &disk)
        .await
        .map_err(|error| status::of(&error))?;
    let refusal = capability::check_all(&request.volume_capabilities).err();
    let refusal = refusal.map(|error| request::invalid(&error));
    let refusal = refusal.or_else(|| Class::read(&request.parameters).err());
    let refusal = refusal.or_else(|| mutable::read(&request.mutable_parameters).err());
    Ok(match refusal {
        Some(refusal) => proto::ValidateVolumeCapabilitiesResponse {
            confirmed: None,
            message: refusal.message().to_owned(),
        },
        None => proto::ValidateVolumeCapabilitiesResponse {
            confirmed: Some(Confirmed {
                volume_context: request.volume_context,
                volume_capabilities: request.volume_capabilities,
                parameters: request.parameters,
                mutable_parameters: request.mutable_parameters,
            }),
            message: String::new(),
        },
    })
}
