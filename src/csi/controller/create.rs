//! CreateVolume and DeleteVolume.

use std::sync::Arc;

use tonic::Status;

use super::operation::LockedOperation;
use super::service::Service;
use super::{events, response};
use crate::csi::request::Call;
use crate::csi::request::create_volume::CreateVolume;
use crate::csi::{layer, proto};
use crate::model::DiskId;

pub(super) async fn create(
    service: &Service,
    (deadline, request): Call<CreateVolume>,
) -> Result<proto::CreateVolumeResponse, Status> {
    let new = request.new;
    service.node_categories.record(&new);
    let guard = service.begin(&LockedOperation::CreateVolume(&new.name))?;
    let disks = Arc::clone(&service.disks);
    let created = service
        .try_run(guard, async move {
            match &new.clone_of {
                Some(source) => Box::pin(disks.provisioner.create_clone(deadline, &new, source)).await,
                None => disks.provisioner.create(deadline, &new).await,
            }
        })
        .await?;
    let disk = created.inspect_err(|error| events::volume_not_created(service, request.claim, error))?;
    layer::record("disk.id", &disk.id);
    let mut volume = response::volume(&disk, request.volume_context);
    volume.content_source = request.content_source;
    volume.accessible_topology = response::topology(&disk, request.nodes_report_categories);
    Ok(proto::CreateVolumeResponse { volume: Some(volume) })
}

pub(super) async fn delete(
    service: &Service,
    (deadline, disk): Call<Option<DiskId>>,
) -> Result<proto::DeleteVolumeResponse, Status> {
    // An ID that no disk can have is already deleted.
    if let Some(disk) = disk {
        let guard = service.begin(&LockedOperation::DeleteVolume(&disk))?;
        let disks = Arc::clone(&service.disks);
        let id = disk.clone();
        let operation = async move { disks.provisioner.delete(deadline, &id).await };
        service.run(guard, operation).await?;
        service.listings.mark_deleted(disk.as_str());
    }
    Ok(proto::DeleteVolumeResponse {})
}
