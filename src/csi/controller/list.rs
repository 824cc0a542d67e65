//! ListVolumes and ListSnapshots.

use std::collections::HashMap;

use tonic::Status;

use super::paging::Item;
use super::{Service, answer};
use crate::base::Deadline;
use crate::csi::proto::list_volumes_response::{Entry, VolumeStatus};
use crate::csi::proto::{self, list_snapshots_response};
use crate::csi::{request, status};
use crate::disk::{self, Cursor};
use crate::model::{Disk, DiskId, Snapshot, SnapshotId};

pub(super) async fn volumes(
    service: &Service,
    deadline: Deadline,
    request: &proto::ListVolumesRequest,
) -> Result<proto::ListVolumesResponse, Status> {
    let page = request::page(request.max_entries, &request.starting_token)?;
    let item = |disk: &Disk| Item::new(Cursor::new(disk.created, &disk.id), &volume(disk));
    let read = async {
        let listed = service.disks.inventory.list(deadline, item).await;
        listed.map_err(|error| status::of(&error))
    };
    let page = service.listings.page("volumes", page, read).await?;
    Ok(proto::ListVolumesResponse {
        entries: page.entries,
        next_token: page.next_token,
    })
}

fn volume(disk: &Disk) -> Entry {
    Entry {
        volume: Some(answer::volume(disk, HashMap::new())),
        status: Some(VolumeStatus {
            published_node_ids: disk.attachments.iter().map(ToString::to_string).collect(),
            // As far as the row tells: every caller that lists pays for no more calls.
            volume_condition: Some(answer::condition(&disk::ailments(disk))),
        }),
    }
}

pub(super) async fn snapshots(
    service: &Service,
    deadline: Deadline,
    request: &proto::ListSnapshotsRequest,
) -> Result<proto::ListSnapshotsResponse, Status> {
    let page = request::page(request.max_entries, &request.starting_token)?;
    // A filter that cannot be an id matches nothing (CSI: not an error).
    let nothing = proto::ListSnapshotsResponse::default();
    let Ok(id) = filter::<SnapshotId>(&request.snapshot_id) else {
        return Ok(nothing);
    };
    let Ok(source) = filter::<DiskId>(&request.source_volume_id) else {
        return Ok(nothing);
    };
    let item = |row: &Snapshot| Item::new(Cursor::new(row.created, &row.id), &snapshot(row));
    let read = async {
        let listed = service
            .disks
            .inventory
            .list_snapshots(deadline, id.as_ref(), source.as_ref(), item)
            .await;
        listed.map_err(|error| status::of(&error))
    };
    let subject = format!("snapshots {id:?} {source:?}");
    let page = service.listings.page(&subject, page, read).await?;
    Ok(proto::ListSnapshotsResponse {
        entries: page.entries,
        next_token: page.next_token,
    })
}

fn snapshot(snapshot: &Snapshot) -> list_snapshots_response::Entry {
    list_snapshots_response::Entry {
        snapshot: Some(answer::snapshot(snapshot)),
    }
}

fn filter<T: std::str::FromStr>(text: &str) -> Result<Option<T>, T::Err> {
    if text.is_empty() {
        Ok(None)
    } else {
        text.parse().map(Some)
    }
}
