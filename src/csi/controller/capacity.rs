//! GetCapacity.

use tonic::{Code, Status};

use super::{Service, create};
use crate::base::Deadline;
use crate::csi::{proto, status};

/// What a volume of this class could have where the topology says, or where a volume without topology
/// would go.
pub(super) async fn capacity(
    service: &Service,
    deadline: Deadline,
    request: proto::GetCapacityRequest,
) -> Result<proto::GetCapacityResponse, Status> {
    let new = match create::of_class(&request, &service.settings) {
        // The class excludes that place.
        Err(refusal) if refusal.code() == Code::ResourceExhausted => None,
        new => Some(new?),
    };
    let sizes = match &new {
        None => None,
        Some(new) => {
            let sizes = service.disks.provisioner.capacity(deadline, new).await;
            sizes.map_err(|error| status::of(&error))?
        }
    };
    let (least, most) = sizes.map_or((None, None), |sizes| {
        let bytes = |gib: crate::model::Gib| gib.bytes().to_i64();
        (Some(bytes(*sizes.start())), Some(bytes(*sizes.end())))
    });
    Ok(proto::GetCapacityResponse {
        available_capacity: most.unwrap_or(0),
        maximum_volume_size: most,
        minimum_volume_size: least,
    })
}
