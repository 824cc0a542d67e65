//! ListVolumes and ListSnapshots.

use std::collections::HashMap;

use tonic::Status;

use super::{Service, answer};
use crate::base::Deadline;
use crate::csi::proto::list_volumes_response::{Entry, VolumeStatus};
use crate::csi::proto::{self, list_snapshots_response};
use crate::csi::{request, status};
use crate::disk;
use crate::model::{Disk, DiskId, SnapshotId};

pub(super) async fn volumes(
    service: &Service,
    deadline: Deadline,
    request: &proto::ListVolumesRequest,
) -> Result<proto::ListVolumesResponse, Status> {
    let most = request::max_entries(request.max_entries)?;
    let after = request::cursor(&request.starting_token)?;
    let listed = service
        .disks
        .inventory
        .list(deadline, after.as_ref(), most)
        .await;
    let listed = listed.map_err(|error| status::of(&error))?;
    let entry = |disk: &Disk| Entry {
        volume: Some(answer::volume(disk, HashMap::new())),
        status: Some(VolumeStatus {
            published_node_ids: disk.attachments.iter().map(ToString::to_string).collect(),
            // As far as the row tells: every caller that lists pays for no more calls.
            volume_condition: Some(answer::condition(&disk::ailments(disk))),
        }),
    };
    Ok(proto::ListVolumesResponse {
        entries: listed.items.iter().map(entry).collect(),
        next_token: listed
            .next
            .map(|cursor| cursor.to_string())
            .unwrap_or_default(),
    })
}

pub(super) async fn snapshots(
    service: &Service,
    deadline: Deadline,
    request: &proto::ListSnapshotsRequest,
) -> Result<proto::ListSnapshotsResponse, Status> {
    let most = request::max_entries(request.max_entries)?;
    let after = request::cursor(&request.starting_token)?;
    // A filter that cannot be an id matches nothing (CSI: not an error).
    let nothing = proto::ListSnapshotsResponse::default();
    let Ok(id) = filter::<SnapshotId>(&request.snapshot_id) else {
        return Ok(nothing);
    };
    let Ok(source) = filter::<DiskId>(&request.source_volume_id) else {
        return Ok(nothing);
    };
    let page = (after.as_ref(), most);
    let listed = service
        .disks
        .inventory
        .list_snapshots(deadline, id.as_ref(), source.as_ref(), page)
        .await;
    let listed = listed.map_err(|error| status::of(&error))?;
    let entry = |snapshot| list_snapshots_response::Entry {
        snapshot: Some(answer::snapshot(snapshot)),
    };
    Ok(proto::ListSnapshotsResponse {
        entries: listed.items.iter().map(entry).collect(),
        next_token: listed
            .next
            .map(|cursor| cursor.to_string())
            .unwrap_or_default(),
    })
}

fn filter<T: std::str::FromStr>(text: &str) -> Result<Option<T>, T::Err> {
    if text.is_empty() {
        Ok(None)
    } else {
        text.parse().map(Some)
    }
}
