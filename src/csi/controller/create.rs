//! CreateVolume, DeleteVolume and GetCapacity.

use std::sync::Arc;

use tonic::Status;

use super::operation::LockedOperation;
use super::service::Service;
use super::{events, response};
use crate::csi::request::ParsedCall;
use crate::csi::request::create_volume::CreateVolume;
use crate::csi::{layer, proto};
use crate::disk::NewDisk;
use crate::model::{DiskId, Gib};

pub(super) async fn create(
    service: &Service,
    (deadline, request): ParsedCall<CreateVolume>,
) -> Result<proto::CreateVolumeResponse, Status> {
    let new = request.new;
    service.node_categories.record(&new);
    let guard = service.begin(&LockedOperation::CreateVolume(&new.name))?;
    let disks = Arc::clone(&service.disks);
    let created = service
        .try_run(guard, async move {
            match &new.clone_of {
                Some(source) => Box::pin(disks.provisioner.create_clone(deadline, &new, source)).await,
                None => disks.provisioner.create(deadline, &new).await,
            }
        })
        .await?;
    let disk = created.inspect_err(|error| events::volume_not_created(service, request.claim, error))?;
    layer::record("disk.id", &disk.id);
    let mut volume = response::volume(&disk, request.volume_context);
    volume.content_source = request.content_source;
    volume.accessible_topology = response::topology(&disk, request.nodes_report_categories);
    Ok(proto::CreateVolumeResponse { volume: Some(volume) })
}

pub(super) async fn delete(
    service: &Service,
    (deadline, disk): ParsedCall<Option<DiskId>>,
) -> Result<proto::DeleteVolumeResponse, Status> {
    // An ID that no disk can have is already deleted.
    if let Some(disk) = disk {
        let guard = service.begin(&LockedOperation::DeleteVolume(&disk))?;
        let disks = Arc::clone(&service.disks);
        let id = disk.clone();
        let operation = async move { disks.provisioner.delete(deadline, &id).await };
        service.run(guard, operation).await?;
        service.listings.mark_deleted(disk.as_str());
    }
    Ok(proto::DeleteVolumeResponse {})
}

/// The sizes of a volume of this class in the topology, or in the default zone without a topology; zero if the
/// class excludes that zone.
pub(super) async fn capacity(
    service: &Service,
    (deadline, new): ParsedCall<Option<NewDisk>>,
) -> Result<proto::GetCapacityResponse, Status> {
    let sizes = match &new {
        None => None,
        Some(new) => {
            service.node_categories.record(new);
            service.disks.provisioner.capacity(deadline, new).await?
        }
    };
    let (least, most) = sizes.map_or((None, None), |sizes| {
        let bytes = |gib: Gib| gib.bytes().to_i64();
        (Some(bytes(*sizes.start())), Some(bytes(*sizes.end())))
    });
    Ok(proto::GetCapacityResponse {
        available_capacity: most.unwrap_or(0),
        maximum_volume_size: most,
        minimum_volume_size: least,
    })
}
