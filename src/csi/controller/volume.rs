use std::collections::HashMap;

use tonic::Status;

use super::operation::LockedOperation;
use super::service::Service;
use super::{events, response};
use crate::csi::proto::controller_get_volume_response::VolumeStatus;
use crate::csi::request::ParsedCall;
use crate::csi::request::create_volume::CreateVolume;
use crate::csi::request::volume::Expand;
use crate::csi::{layer, proto, status};
use crate::disk::NewDisk;
use crate::model::{Change, DiskId, Gib};

pub(super) async fn create(
    service: &Service,
    (deadline, request): ParsedCall<CreateVolume>,
) -> Result<proto::CreateVolumeResponse, Status> {
    let new = request.new;
    service.node_categories.record(&new);
    let locked = LockedOperation::on(format!("volume {:?}", new.name));
    let create = service.run(locked, |disks| async move {
        match &new.clone_of {
            Some(source) => Box::pin(disks.provisioner.create_clone(deadline, &new, source)).await,
            None => disks.provisioner.create(deadline, &new).await,
        }
    });
    let created = create.await?;
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
        let (locked, id) = (LockedOperation::removal(&disk), disk.clone());
        let delete = service.run(
            locked,
            |disks| async move { disks.provisioner.delete(deadline, &id).await },
        );
        delete.await??;
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
    let bytes = |gib: &Gib| gib.bytes().to_i64();
    let most = sizes.as_ref().map(|sizes| bytes(sizes.end()));
    Ok(proto::GetCapacityResponse {
        available_capacity: most.unwrap_or(0),
        maximum_volume_size: most,
        minimum_volume_size: sizes.map(|sizes| bytes(sizes.start())),
    })
}

pub(super) async fn expand(
    service: &Service,
    (deadline, Expand { disk, size, block }): ParsedCall<Expand>,
) -> Result<proto::ControllerExpandVolumeResponse, Status> {
    let locked = LockedOperation::on(format!("the size of volume {disk}"));
    let resize = service.run(locked, |disks| async move {
        disks.resizer.resize(deadline, &disk, size).await
    });
    let disk = resize.await?.map_err(|error| status::for_expansion(&error))?;
    Ok(proto::ControllerExpandVolumeResponse {
        capacity_bytes: disk.size.bytes().to_i64(),
        node_expansion_required: !block,
    })
}

pub(super) async fn modify(
    service: &Service,
    (deadline, (disk, change)): ParsedCall<(DiskId, Change)>,
) -> Result<proto::ControllerModifyVolumeResponse, Status> {
    let locked = LockedOperation::on(format!("the parameters of volume {disk}"));
    let nodes = service.node_categories.clone();
    let modify = service.run(locked, |disks| async move {
        if let Some(to) = &change.category
            && !nodes.is_empty()
        {
            nodes.check(&disks.inventory.disk(deadline, &disk).await?, to)?;
        }
        Ok(disks.modifier.modify(deadline, &disk, &change).await?)
    });
    modify.await?.map(|()| proto::ControllerModifyVolumeResponse {})
}

pub(super) async fn get(
    service: &Service,
    (deadline, id): ParsedCall<DiskId>,
) -> Result<proto::ControllerGetVolumeResponse, Status> {
    let disk = service.disks.inventory.disk(deadline, &id).await?;
    Ok(proto::ControllerGetVolumeResponse {
        status: Some(VolumeStatus {
            published_node_ids: disk.attachments.iter().map(ToString::to_string).collect(),
        }),
        volume: Some(response::volume(&disk, HashMap::new())),
    })
}

pub(super) async fn health(
    service: &Service,
    (deadline, id): ParsedCall<DiskId>,
) -> Result<proto::ControllerGetVolumeHealthResponse, Status> {
    let (disk, issues) = service.disks.inventory.health(deadline, &id).await?;
    Ok(proto::ControllerGetVolumeHealthResponse {
        volume_health: Some(response::health(&disk.id, &issues)),
    })
}
