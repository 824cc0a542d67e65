use tonic::Status;

use super::events;
use super::operation::LockedOperation;
use super::service::Service;
use crate::csi::proto;
use crate::csi::request::ParsedCall;
use crate::disk::PublishRequest;
use crate::model::{DiskId, InstanceId, context};

pub(super) async fn publish(
    service: &Service,
    (deadline, wanted): ParsedCall<PublishRequest>,
) -> Result<proto::ControllerPublishVolumeResponse, Status> {
    let (locked, read_only) = (LockedOperation::publish(&wanted), wanted.read_only);
    let publish = service.run(locked, |disks| async move {
        disks.publisher.publish(deadline, &wanted).await
    });
    let published = publish.await?;
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
    (deadline, wanted): ParsedCall<Option<(DiskId, Option<InstanceId>)>>,
) -> Result<proto::ControllerUnpublishVolumeResponse, Status> {
    if let Some((disk, node)) = wanted {
        let locked = match &node {
            None => LockedOperation::removal(&disk),
            Some(node) => LockedOperation::unpublish(&disk, node),
        };
        let detach = service.run(locked, |disks| async move {
            match &node {
                None => disks.detacher.detach_everywhere(deadline, &disk).await,
                Some(node) => disks.detacher.detach(deadline, &disk, node).await,
            }
        });
        detach.await??;
    }
    Ok(proto::ControllerUnpublishVolumeResponse {})
}
