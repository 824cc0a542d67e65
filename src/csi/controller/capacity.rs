//! GetCapacity.

use tonic::Status;

use super::service::Service;
use crate::csi::proto;
use crate::csi::request::Call;
use crate::disk::NewDisk;

/// The sizes of a volume of this class in the topology, or in the default zone without a topology; zero if the
/// class excludes that zone.
pub(super) async fn capacity(
    service: &Service,
    (deadline, new): Call<Option<NewDisk>>,
) -> Result<proto::GetCapacityResponse, Status> {
    let sizes = match &new {
        None => None,
        Some(new) => {
            service.node_categories.record(new);
            service.disks.provisioner.capacity(deadline, new).await?
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
