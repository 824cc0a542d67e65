//! CreateSnapshot, GetSnapshot and DeleteSnapshot.

use std::sync::Arc;

use tonic::Status;

use super::operation::LockedOperation;
use super::response;
use super::service::Service;
use crate::csi::proto;
use crate::csi::request::ParsedCall;
use crate::disk::NewSnapshot;
use crate::model::SnapshotId;

pub(super) async fn create(
    service: &Service,
    (deadline, new): ParsedCall<NewSnapshot>,
) -> Result<proto::CreateSnapshotResponse, Status> {
    let guard = service.begin(&LockedOperation::CreateSnapshot(&new.name))?;
    let disks = Arc::clone(&service.disks);
    let operation = async move { disks.snapshotter.create(deadline, &new).await };
    let snapshot = service.run(guard, operation).await?;
    Ok(proto::CreateSnapshotResponse {
        snapshot: Some(response::snapshot(&snapshot)),
    })
}

pub(super) async fn get(
    service: &Service,
    (deadline, id): ParsedCall<SnapshotId>,
) -> Result<proto::GetSnapshotResponse, Status> {
    let snapshot = service.disks.snapshotter.get(deadline, &id).await?;
    Ok(proto::GetSnapshotResponse {
        snapshot: Some(response::snapshot(&snapshot)),
    })
}

pub(super) async fn delete(
    service: &Service,
    (deadline, snapshot): ParsedCall<Option<SnapshotId>>,
) -> Result<proto::DeleteSnapshotResponse, Status> {
    // An ID that no snapshot can have is already deleted.
    if let Some(snapshot) = snapshot {
        let guard = service.begin(&LockedOperation::DeleteSnapshot(&snapshot))?;
        let disks = Arc::clone(&service.disks);
        let id = snapshot.clone();
        let operation = async move { disks.snapshotter.delete(deadline, &id).await };
        service.run(guard, operation).await?;
        service.listings.mark_deleted(snapshot.as_str());
    }
    Ok(proto::DeleteSnapshotResponse {})
}
