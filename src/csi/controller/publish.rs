//! ControllerPublishVolume and ControllerUnpublishVolume.

use std::collections::HashMap;
use std::sync::Arc;

use tonic::Status;

use super::operation::Operation;
use super::{Service, tell};
use crate::base::Deadline;
use crate::csi::capability::AccessMode;
use crate::csi::{capability, layer, proto, request, status};
use crate::disk::{Publish, Share};
use crate::model::{DiskId, InstanceId, context};

pub(super) async fn publish(
    service: &Service,
    deadline: Deadline,
    request: proto::ControllerPublishVolumeRequest,
) -> Result<proto::ControllerPublishVolumeResponse, Status> {
    layer::about("disk.id", &request.volume_id);
    layer::about("node.id", &request.node_id);
    // All fields are looked at before either id is: an empty one is INVALID_ARGUMENT whatever else.
    request::required("volume_id", &request.volume_id)?;
    request::required("node_id", &request.node_id)?;
    let capability = request.volume_capability.as_ref();
    let capability = capability::check(capability).map_err(|e| request::invalid(&e))?;
    let disk: DiskId = request::id("volume_id", &request.volume_id)?;
    let node: InstanceId = request::id("node_id", &request.node_id)?;
    let wanted = Publish {
        disk,
        node,
        read_only: request.readonly || capability.mode.is_read_only(),
        share: share(capability.mode),
        shareable: context::get(&request.volume_context, context::MULTI_ATTACH)
            .is_some_and(|value| value.eq_ignore_ascii_case("true")),
    };
    let read_only = wanted.read_only;
    let guard = service.begin(&Operation::Publish(&wanted))?;
    let disks = Arc::clone(&service.disks);
    let published = service
        .alone(guard, async move {
            disks.attacher.publish(deadline, &wanted).await
        })
        .await?;
    let row = published.map_err(|error| {
        tell::not_attached(service, &error);
        status::of(&error)
    })?;
    // What the cloud calls the serial is what the guest sees; the node does not have to guess.
    let serial = row
        .serial
        .iter()
        .map(|s| (context::SERIAL.to_owned(), s.to_string()));
    let reads = read_only.then(|| (context::ATTACHED_READ_ONLY.to_owned(), "true".to_owned()));
    let publish_context = serial.chain(reads);
    Ok(proto::ControllerPublishVolumeResponse {
        publish_context: publish_context.collect::<HashMap<_, _>>(),
    })
}

fn share(mode: AccessMode) -> Share {
    match mode {
        AccessMode::SingleNodeWriter
        | AccessMode::SingleNodeReader
        | AccessMode::SingleNodeSingleWriter
        | AccessMode::SingleNodeMultiWriter => Share::One,
        AccessMode::MultiNodeSingleWriter => Share::OneWriter,
        AccessMode::MultiNodeReader | AccessMode::MultiNodeMultiWriter => Share::Many,
    }
}

pub(super) async fn unpublish(
    service: &Service,
    deadline: Deadline,
    request: &proto::ControllerUnpublishVolumeRequest,
) -> Result<proto::ControllerUnpublishVolumeResponse, Status> {
    let id = request::required("volume_id", &request.volume_id)?;
    layer::about("disk.id", id);
    layer::about("node.id", &request.node_id);
    let done = proto::ControllerUnpublishVolumeResponse {};
    // What cannot be a disk, or an instance, holds nothing and is held by nobody.
    let Ok(disk) = id.parse::<DiskId>() else {
        return Ok(done);
    };
    let disks = Arc::clone(&service.disks);
    if request.node_id.is_empty() {
        let guard = service.begin(&Operation::UnpublishAll(&disk))?;
        let verb = async move { disks.attacher.detach_everywhere(deadline, &disk).await };
        service.change(guard, verb).await?;
    } else if let Ok(node) = request.node_id.parse::<InstanceId>() {
        let guard = service.begin(&Operation::Unpublish(&disk, &node))?;
        let verb = async move { disks.attacher.detach(deadline, &disk, &node).await };
        service.change(guard, verb).await?;
    }
    Ok(done)
}
