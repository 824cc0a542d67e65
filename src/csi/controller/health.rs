//! ControllerGetVolume, ControllerGetVolumeHealth and ControllerListVolumeHealth.

use std::collections::HashMap;

use tonic::Status;

use super::paging::Item;
use super::response;
use super::service::Service;
use crate::csi::proto;
use crate::csi::proto::controller_get_volume_response::VolumeStatus;
use crate::csi::request::ParsedCall;
use crate::csi::request::page::PageRequest;
use crate::disk::UnhealthyVolume;
use crate::model::DiskId;

pub(super) async fn volume(
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

pub(super) async fn list(
    service: &Service,
    (deadline, page): ParsedCall<PageRequest>,
) -> Result<proto::ControllerListVolumeHealthResponse, Status> {
    let read = async {
        let listed = service.disks.inventory.list_unhealthy(deadline).await?;
        let item = |volume: UnhealthyVolume| {
            Item::new(volume.cursor(), &response::health(&volume.disk, &volume.health_issues))
        };
        Ok(listed.into_iter().map(item).collect())
    };
    let page = service.listings.page("health", page, read).await?;
    Ok(proto::ControllerListVolumeHealthResponse {
        entries: page.entries,
        next_token: page.next_token,
    })
}
