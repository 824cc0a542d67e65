//! ControllerGetVolume, ControllerGetVolumeHealth and ControllerListVolumeHealth.

use std::collections::HashMap;

use tonic::Status;

use super::paging::Item;
use super::{Service, answer};
use crate::base::Deadline;
use crate::csi::proto::controller_get_volume_response::VolumeStatus;
use crate::csi::{layer, proto, request, status};
use crate::disk::{Ailment, Ill};
use crate::model::{Disk, DiskId};

async fn look(
    service: &Service,
    deadline: Deadline,
    id: &str,
) -> Result<(Disk, Vec<Ailment>), Status> {
    let id = request::required("volume_id", id)?;
    layer::about("disk.id", id);
    let disk: DiskId = request::id("volume_id", id)?;
    let looked = service.disks.inventory.health(deadline, &disk).await;
    looked.map_err(|error| status::of(&error))
}

pub(super) async fn volume(
    service: &Service,
    deadline: Deadline,
    request: &proto::ControllerGetVolumeRequest,
) -> Result<proto::ControllerGetVolumeResponse, Status> {
    let (disk, ailments) = look(service, deadline, &request.volume_id).await?;
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
    deadline: Deadline,
    request: &proto::ControllerGetVolumeHealthRequest,
) -> Result<proto::ControllerGetVolumeHealthResponse, Status> {
    let (disk, ailments) = look(service, deadline, &request.volume_id).await?;
    Ok(proto::ControllerGetVolumeHealthResponse {
        volume_health: Some(answer::health(&disk.id, &ailments)),
    })
}

pub(super) async fn list(
    service: &Service,
    deadline: Deadline,
    request: &proto::ControllerListVolumeHealthRequest,
) -> Result<proto::ControllerListVolumeHealthResponse, Status> {
    let page = request::page(request.max_entries, &request.starting_token)?;
    let read = async {
        let listed = service.disks.inventory.list_ill(deadline).await;
        let listed = listed.map_err(|error| status::of(&error))?.into_iter();
        let item = |ill: Ill| Item::new(ill.cursor(), &answer::health(&ill.disk, &ill.ailments));
        Ok(listed.map(item).collect())
    };
    let page = service.listings.page("health", page, read).await?;
    Ok(proto::ControllerListVolumeHealthResponse {
        entries: page.entries,
        next_token: page.next_token,
    })
}
