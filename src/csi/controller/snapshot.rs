//! CreateSnapshot, GetSnapshot and DeleteSnapshot.

use std::sync::Arc;

use tonic::Status;

use super::operation::Operation;
use super::{Service, answer};
use crate::csi::proto;
use crate::csi::request::Call;
use crate::disk::NewSnapshot;
use crate::model::SnapshotId;

pub(super) async fn create(
    service: &Service,
    (deadline, new): Call<NewSnapshot>,
) -> Result<proto::CreateSnapshotResponse, Status> {
    let guard = service.begin(&Operation::CreateSnapshot(&new.name))?;
    let disks = Arc::clone(&service.disks);
    let verb = async move { disks.snapshotter.create(deadline, &new).await };
    let made = service.change(guard, verb).await?;
    Ok(proto::CreateSnapshotResponse {
        snapshot: Some(answer::snapshot(&made)),
    })
}

pub(super) async fn get(
    service: &Service,
    (deadline, id): Call<SnapshotId>,
) -> Result<proto::GetSnapshotResponse, Status> {
    let row = service.disks.snapshotter.get(deadline, &id).await?;
    Ok(proto::GetSnapshotResponse {
        snapshot: Some(answer::snapshot(&row)),
    })
}

pub(super) async fn delete(
    service: &Service,
    (deadline, snapshot): Call<Option<SnapshotId>>,
) -> Result<proto::DeleteSnapshotResponse, Status> {
    // What cannot be a snapshot is certainly gone.
    if let Some(snapshot) = snapshot {
        let guard = service.begin(&Operation::DeleteSnapshot(&snapshot))?;
        let disks = Arc::clone(&service.disks);
        let id = snapshot.clone();
        let verb = async move { disks.snapshotter.delete(deadline, &id).await };
        service.change(guard, verb).await?;
        service.listings.deleted(snapshot.as_str());
    }
    Ok(proto::DeleteSnapshotResponse {})
}
