use super::error::{Error, Result};
use super::{capability, field};
use crate::csi::param::mutable;
use crate::csi::proto::{
    ControllerExpandVolumeRequest, ControllerModifyVolumeRequest, ControllerPublishVolumeRequest,
    ControllerUnpublishVolumeRequest,
};
use crate::disk::PublishRequest;
use crate::model::{Change, DiskId, InstanceId, SizeRange, context};

#[derive(Debug)]
pub(crate) struct Expand {
    pub(crate) disk: DiskId,
    pub(crate) size: SizeRange,
    /// Block access: the node has no filesystem to expand.
    pub(crate) block: bool,
}

pub(crate) fn expand(message: &ControllerExpandVolumeRequest) -> Result<Expand> {
    field::required("volume_id", &message.volume_id)?;
    let range = message.capacity_range.as_ref();
    let range = range.ok_or(Error::missing("capacity_range"))?;
    let size = field::size_range(Some(range))?;
    if size == SizeRange::default() {
        let why = "has neither required_bytes nor limit_bytes";
        return Err(Error::unsupported("capacity_range", why));
    }
    let block = capability::is_block(message.volume_capability.as_ref())?;
    Ok(Expand {
        disk: field::id("volume_id", &message.volume_id)?,
        size,
        block,
    })
}

pub(crate) fn modify(message: &ControllerModifyVolumeRequest) -> Result<(DiskId, Change)> {
    field::required("volume_id", &message.volume_id)?;
    let change = mutable::read_change(&message.mutable_parameters)?;
    Ok((field::id("volume_id", &message.volume_id)?, change))
}

pub(crate) fn publish(message: &ControllerPublishVolumeRequest) -> Result<PublishRequest> {
    // Before the IDs are parsed: a missing field is INVALID_ARGUMENT even if an ID is invalid.
    field::required("volume_id", &message.volume_id)?;
    field::required("node_id", &message.node_id)?;
    let capability = capability::required(message.volume_capability.as_ref())?;
    // Only an optimization, so an invalid value is ignored.
    let multi_attach = field::flag("volume_context", &message.volume_context, context::MULTI_ATTACH);
    Ok(PublishRequest {
        disk: field::id("volume_id", &message.volume_id)?,
        node: field::id("node_id", &message.node_id)?,
        read_only: message.readonly || capability.is_read_only(),
        access: capability.node_access(),
        multi_attach: multi_attach.is_ok_and(|flag| flag == Some(true)),
    })
}

/// Without a node, the disk is detached from all. `None` if no disk or instance can have the IDs: nothing is attached.
pub(crate) fn unpublish(message: &ControllerUnpublishVolumeRequest) -> Result<Option<(DiskId, Option<InstanceId>)>> {
    let disk = field::id_to_remove("volume_id", &message.volume_id)?;
    Ok(disk.zip(field::optional_id(&message.node_id)))
}
