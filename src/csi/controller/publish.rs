//! ControllerPublishVolume and ControllerUnpublishVolume.

use std::sync::Arc;

use tonic::Status;

use super::operation::Operation;
use super::{Service, tell};
use crate::csi::proto;
use crate::csi::request::Call;
use crate::csi::request::publish::Unpublish;
use crate::disk::Publish;
use crate::model::context;

pub(super) async fn publish(
    service: &Service,
    (deadline, wanted): Call<Publish>,
) -> Result<proto::ControllerPublishVolumeResponse, Status> {
    let read_only = wanted.read_only;
    let guard = service.begin(&Operation::Publish(&wanted))?;
    let disks = Arc::clone(&service.disks);
    let verb = async move { disks.attacher.publish(deadline, &wanted).await };
    let published = service.alone(guard, verb).await?;
    let row = published.inspect_err(|error| tell::not_attached(service, error))?;
    // What the cloud calls the serial is what the guest sees; the node does not have to guess.
    let serial = row
        .serial
        .iter()
        .map(|s| (context::SERIAL.to_owned(), s.to_string()));
    let reads = read_only.then(|| (context::ATTACHED_READ_ONLY.to_owned(), "true".to_owned()));
    Ok(proto::ControllerPublishVolumeResponse {
        publish_context: serial.chain(reads).collect(),
    })
}

pub(super) async fn unpublish(
    service: &Service,
    (deadline, wanted): Call<Option<Unpublish>>,
) -> Result<proto::ControllerUnpublishVolumeResponse, Status> {
    let disks = Arc::clone(&service.disks);
    match wanted {
        None => {}
        Some(Unpublish { disk, node: None }) => {
            let guard = service.begin(&Operation::UnpublishAll(&disk))?;
            let verb = async move { disks.attacher.detach_everywhere(deadline, &disk).await };
            service.change(guard, verb).await?;
        }
        Some(Unpublish {
            disk,
            node: Some(node),
        }) => {
            let guard = service.begin(&Operation::Unpublish(&disk, &node))?;
            let verb = async move { disks.attacher.detach(deadline, &disk, &node).await };
            service.change(guard, verb).await?;
        }
    }
    Ok(proto::ControllerUnpublishVolumeResponse {})
}
