//! ControllerGetVolume, ControllerGetVolumeHealth and ControllerListVolumeHealth.

use std::collections::HashMap;

use tonic::Status;

use super::paging::Item;
use super::{Service, answer};
use crate::csi::proto;
use crate::csi::proto::controller_get_volume_response::VolumeStatus;
use crate::csi::request::Call;
use crate::csi::request::page::PageRequest;
use crate::disk::Ill;
use crate::model::DiskId;

pub(super) async fn volume(
    service: &Service,
    (deadline, id): Call<DiskId>,
) -> Result<proto::ControllerGetVolumeResponse, Status> {
    let (disk, ailments) = service.disks.inventory.health(deadline, &id).await?;
    Ok(proto::ControllerGetVolumeResponse {
        status: Some(VolumeStatus {
            published_node_ids: disk.attachments.iter().map(ToString::to_string).collect(),
            volume_condition: Some(answer::condition(&ailments)),
        }),
        volume: Some(answer::volume(&disk, HashMap::new())),
    })
}

pub(super) async fn health(
    service: &Service,
    (deadline, id): Call<DiskId>,
) -> Result<proto::ControllerGetVolumeHealthResponse, Status> {
    let (disk, ailments) = service.disks.inventory.health(deadline, &id).await?;
    Ok(proto::ControllerGetVolumeHealthResponse {
        volume_health: Some(answer::health(&disk.id, &ailments)),
    })
}

pub(super) async fn list(
    service: &Service,
    (deadline, page): Call<PageRequest>,
) -> Result<proto::ControllerListVolumeHealthResponse, Status> {
    let read = async {
        let listed = service.disks.inventory.list_ill(deadline).await?;
        let item = |ill: Ill| Item::new(ill.cursor(), &answer::health(&ill.disk, &ill.ailments));
        Ok(listed.into_iter().map(item).collect())
    };
    let page = service.listings.page("health", page, read).await?;
    Ok(proto::ControllerListVolumeHealthResponse {
        entries: page.entries,
        next_token: page.next_token,
    })
}
