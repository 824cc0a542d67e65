//! ListVolumes and ListSnapshots.

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
use crate::disk::Cursor;
use crate::model::{Disk, Snapshot};

pub(super) async fn volumes(
    service: &Service,
    (deadline, page): ParsedCall<PageRequest>,
) -> Result<proto::ListVolumesResponse, Status> {
    let item = |disk: &Disk| Item::new(Cursor::new(disk.created, &disk.id), &volume(disk));
    let inventory = &service.disks.inventory;
    let read = async {
        if service.lists_published_nodes {
            return Ok(inventory.list_published(deadline, item).await?);
        }
        Ok(inventory.list(deadline, item).await?)
    };
    let page = service.listings.page("volumes", page, read).await?;
    Ok(proto::ListVolumesResponse {
        entries: page.entries,
        next_token: page.next_token,
    })
}

fn volume(disk: &Disk) -> Entry {
    Entry {
        volume: Some(response::volume(disk, HashMap::new())),
        status: Some(VolumeStatus {
            published_node_ids: disk.attachments.iter().map(ToString::to_string).collect(),
        }),
    }
}

pub(super) async fn snapshots(
    service: &Service,
    (deadline, request): ParsedCall<Option<ListSnapshots>>,
) -> Result<proto::ListSnapshotsResponse, Status> {
    let Some(request) = request else {
        return Ok(proto::ListSnapshotsResponse::default());
    };
    let (id, source) = (request.snapshot, request.source);
    let item = |row: &Snapshot| Item::new(Cursor::new(row.created, &row.id), &snapshot(row));
    let read = async {
        let (id, source) = (id.as_ref(), source.as_ref());
        Ok(service
            .disks
            .inventory
            .list_snapshots(deadline, id, source, item)
            .await?)
    };
    let subject = format!("snapshots {id:?} {source:?}");
    let page = service.listings.page(&subject, request.page, read).await?;
    Ok(proto::ListSnapshotsResponse {
        entries: page.entries,
        next_token: page.next_token,
    })
}

fn snapshot(snapshot: &Snapshot) -> list_snapshots_response::Entry {
    list_snapshots_response::Entry {
        snapshot: Some(response::snapshot(snapshot)),
    }
}
