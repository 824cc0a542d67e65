//! CreateSnapshot and DeleteSnapshot.

use std::sync::Arc;

use tonic::Status;

use super::{Service, answer};
use crate::base::Deadline;
use crate::csi::{layer, proto, request};
use crate::disk::NewSnapshot;
use crate::model::SnapshotId;

pub(super) async fn create(
    service: &Service,
    deadline: Deadline,
    request: &proto::CreateSnapshotRequest,
) -> Result<proto::CreateSnapshotResponse, Status> {
    layer::about("snapshot.name", &request.name);
    layer::about("disk.id", &request.source_volume_id);
    request::required("source_volume_id", &request.source_volume_id)?;
    let name = request::name("name", &request.name)?;
    let unknown = |key: &&String| !key.to_ascii_lowercase().starts_with("csi.storage.k8s.io/");
    if let Some(key) = request.parameters.keys().find(unknown) {
        return Err(Status::invalid_argument(format!(
            "unknown parameter {key:?} of the VolumeSnapshotClass; only csi.storage.k8s.io/* is \
             allowed"
        )));
    }
    let source = request::id("source_volume_id", &request.source_volume_id)?;
    let new = NewSnapshot { name, source };
    let key = format!("snapshot {:?}", new.name);
    let disks = Arc::clone(&service.disks);
    let made = service
        .change(
            &key,
            async move { disks.create_snapshot(deadline, &new).await },
        )
        .await?;
    Ok(proto::CreateSnapshotResponse {
        snapshot: Some(answer::snapshot(&made)),
    })
}

pub(super) async fn delete(
    service: &Service,
    deadline: Deadline,
    request: &proto::DeleteSnapshotRequest,
) -> Result<proto::DeleteSnapshotResponse, Status> {
    let id = request::required("snapshot_id", &request.snapshot_id)?;
    layer::about("snapshot.id", id);
    // What cannot be a snapshot is certainly gone.
    if let Ok(snapshot) = id.parse::<SnapshotId>() {
        let disks = Arc::clone(&service.disks);
        service
            .change(id, async move {
                disks.delete_snapshot(deadline, &snapshot).await
            })
            .await?;
    }
    Ok(proto::DeleteSnapshotResponse {})
}
