//! ControllerPublishVolume and ControllerUnpublishVolume.

use super::error::Result;
use super::{capability, context, field};
use crate::csi::proto::{ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest};
use crate::disk::PublishRequest;
use crate::model::{DiskId, InstanceId, context as keys};

pub(crate) fn publish(message: &ControllerPublishVolumeRequest) -> Result<PublishRequest> {
    // Before the IDs are parsed: a missing field is INVALID_ARGUMENT even if an ID is invalid.
    field::required("volume_id", &message.volume_id)?;
    field::required("node_id", &message.node_id)?;
    let capability = capability::required(message.volume_capability.as_ref())?;
    // Only an optimization, so an invalid value is ignored.
    let multi_attach = context::flag("volume_context", &message.volume_context, keys::MULTI_ATTACH);
    Ok(PublishRequest {
        disk: field::id("volume_id", &message.volume_id)?,
        node: field::id("node_id", &message.node_id)?,
        read_only: message.readonly || capability.is_read_only(),
        access: capability.node_access(),
        multi_attach: multi_attach.is_ok_and(|flag| flag == Some(true)),
    })
}

#[derive(Debug)]
pub(crate) struct Unpublish {
    pub(crate) disk: DiskId,
    /// `None` detaches from all nodes.
    pub(crate) node: Option<InstanceId>,
}

/// `None` if no disk or instance can have the IDs: nothing is attached.
pub(crate) fn unpublish(message: &ControllerUnpublishVolumeRequest) -> Result<Option<Unpublish>> {
    let disk = field::id_to_remove("volume_id", &message.volume_id)?;
    let node = field::optional_id(&message.node_id);
    Ok(disk.zip(node).map(|(disk, node)| Unpublish { disk, node }))
}
