//! ControllerPublishVolume and ControllerUnpublishVolume.

use std::sync::Arc;

use tonic::Status;

use super::events;
use super::operation::LockedOperation;
use super::service::Service;
use crate::csi::proto;
use crate::csi::request::ParsedCall;
use crate::csi::request::publish::Unpublish;
use crate::disk::PublishRequest;
use crate::model::context;

pub(super) async fn publish(
    service: &Service,
    (deadline, wanted): ParsedCall<PublishRequest>,
) -> Result<proto::ControllerPublishVolumeResponse, Status> {
    let read_only = wanted.read_only;
    let guard = service.begin(&LockedOperation::Publish(&wanted))?;
    let disks = Arc::clone(&service.disks);
    let operation = async move { disks.publisher.publish(deadline, &wanted).await };
    let published = service.try_run(guard, operation).await?;
    let disk = published.inspect_err(|error| events::volume_not_attached(service, error))?;
    // The serial that the cloud reports is the serial of the device in the guest.
    let serial = disk.serial.iter().map(|s| (context::SERIAL.to_owned(), s.to_string()));
    let reads = read_only.then(|| (context::ATTACHED_READ_ONLY.to_owned(), "true".to_owned()));
    Ok(proto::ControllerPublishVolumeResponse {
        publish_context: serial.chain(reads).collect(),
    })
}

pub(super) async fn unpublish(
    service: &Service,
    (deadline, wanted): ParsedCall<Option<Unpublish>>,
) -> Result<proto::ControllerUnpublishVolumeResponse, Status> {
    let disks = Arc::clone(&service.disks);
    match wanted {
        None => {}
        Some(Unpublish { disk, node: None }) => {
            let guard = service.begin(&LockedOperation::UnpublishAll(&disk))?;
            let operation = async move { disks.detacher.detach_everywhere(deadline, &disk).await };
            service.run(guard, operation).await?;
        }
        Some(Unpublish { disk, node: Some(node) }) => {
            let guard = service.begin(&LockedOperation::Unpublish(&disk, &node))?;
            let operation = async move { disks.detacher.detach(deadline, &disk, &node).await };
            service.run(guard, operation).await?;
        }
    }
    Ok(proto::ControllerUnpublishVolumeResponse {})
}
