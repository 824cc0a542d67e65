//! CreateVolume and DeleteVolume.

use std::sync::Arc;

use tonic::Status;

use super::operation::Operation;
use super::{Service, answer, tell};
use crate::csi::request::Call;
use crate::csi::request::create_volume::CreateVolume;
use crate::csi::{layer, proto};
use crate::model::DiskId;

pub(super) async fn create(
    service: &Service,
    (deadline, asked): Call<CreateVolume>,
) -> Result<proto::CreateVolumeResponse, Status> {
    let new = asked.new;
    let guard = service.begin(&Operation::CreateVolume(&new.name))?;
    let disks = Arc::clone(&service.disks);
    let made = service
        .alone(guard, async move {
            match &new.clone_of {
                Some(source) => {
                    Box::pin(disks.provisioner.create_clone(deadline, &new, source)).await
                }
                None => disks.provisioner.create(deadline, &new).await,
            }
        })
        .await?;
    let disk = made.inspect_err(|error| tell::not_created(service, asked.claim, error))?;
    layer::about("disk.id", &disk.id);
    let mut volume = answer::volume(&disk, asked.volume_context);
    volume.content_source = asked.content_source;
    volume.accessible_topology = answer::topology(&disk, asked.nodes_say);
    Ok(proto::CreateVolumeResponse {
        volume: Some(volume),
    })
}

pub(super) async fn delete(
    service: &Service,
    (deadline, disk): Call<Option<DiskId>>,
) -> Result<proto::DeleteVolumeResponse, Status> {
    // What cannot be a disk is certainly gone.
    if let Some(disk) = disk {
        let guard = service.begin(&Operation::DeleteVolume(&disk))?;
        let disks = Arc::clone(&service.disks);
        let id = disk.clone();
        let verb = async move { disks.provisioner.delete(deadline, &id).await };
        service.change(guard, verb).await?;
        service.listings.deleted(disk.as_str());
    }
    Ok(proto::DeleteVolumeResponse {})
}
