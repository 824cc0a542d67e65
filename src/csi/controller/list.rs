use std::collections::HashMap;

use tonic::Status;

use super::paging::Item;
use super::response;
use super::service::Service;
use crate::csi::proto::list_volumes_response::{Entry, VolumeStatus};
use crate::csi::proto::{self, list_snapshots_response};
use crate::csi::request::ParsedCall;
use crate::csi::request::page::PageRequest;
use crate::csi::request::snapshot::ListSnapshots;
use crate::disk::{Cursor, UnhealthyVolume};
use crate::model::{Disk, Snapshot};

pub(super) async fn volumes(
    service: &Service,
    (deadline, page): ParsedCall<PageRequest>,
) -> Result<proto::ListVolumesResponse, Status> {
    let item = |disk: &Disk| {
        let entry = Entry {
            volume: Some(response::volume(disk, HashMap::new())),
            status: Some(VolumeStatus {
                published_node_ids: disk.attachments.iter().map(ToString::to_string).collect(),
            }),
        };
        Item::new(Cursor::new(disk.created, &disk.id), &entry)
    };
    let inventory = &service.disks.inventory;
    let read = async {
        match service.lists_published_nodes {
            true => inventory.list_published(deadline, item).await,
            false => inventory.list(deadline, item).await,
        }
    };
    let (entries, next_token) = service.listings.page("volumes", page, read).await?;
    Ok(proto::ListVolumesResponse { entries, next_token })
}

pub(super) async fn snapshots(
    service: &Service,
    (deadline, request): ParsedCall<Option<ListSnapshots>>,
) -> Result<proto::ListSnapshotsResponse, Status> {
    let Some(ListSnapshots { page, snapshot, source }) = request else {
        return Ok(proto::ListSnapshotsResponse::default());
    };
    let item = |row: &Snapshot| {
        let snapshot = Some(response::snapshot(row));
        Item::new(
            Cursor::new(row.created, &row.id),
            &list_snapshots_response::Entry { snapshot },
        )
    };
    let (id, of) = (snapshot.as_ref(), source.as_ref());
    let read = service.disks.inventory.list_snapshots(deadline, id, of, item);
    let subject = format!("snapshots {snapshot:?} {source:?}");
    let (entries, next_token) = service.listings.page(&subject, page, read).await?;
    Ok(proto::ListSnapshotsResponse { entries, next_token })
}

pub(super) async fn health(
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
    let (entries, next_token) = service.listings.page("health", page, read).await?;
    Ok(proto::ControllerListVolumeHealthResponse { entries, next_token })
}
