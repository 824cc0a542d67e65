//! Requests about an existing volume.

use super::error::{Error, Result};
use super::{capability, field};
use crate::csi::param::mutable;
use crate::csi::proto::{
    ControllerExpandVolumeRequest, ControllerGetVolumeHealthRequest, ControllerGetVolumeRequest,
    ControllerModifyVolumeRequest, DeleteVolumeRequest,
};
use crate::model::{Change, DiskId, SizeRange};

/// `None` if no disk can have the ID.
pub(crate) fn delete(message: &DeleteVolumeRequest) -> Result<Option<DiskId>> {
    field::id_to_remove("volume_id", &message.volume_id)
}

pub(crate) fn get(message: &ControllerGetVolumeRequest) -> Result<DiskId> {
    field::id("volume_id", &message.volume_id)
}

pub(crate) fn health(message: &ControllerGetVolumeHealthRequest) -> Result<DiskId> {
    field::id("volume_id", &message.volume_id)
}

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
    let range = range.ok_or(Error::Missing("capacity_range".into()))?;
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

#[derive(Debug)]
pub(crate) struct Modify {
    pub(crate) disk: DiskId,
    pub(crate) change: Change,
}

pub(crate) fn modify(message: &ControllerModifyVolumeRequest) -> Result<Modify> {
    field::required("volume_id", &message.volume_id)?;
    let change = mutable::read(&message.mutable_parameters)?;
    Ok(Modify {
        disk: field::id("volume_id", &message.volume_id)?,
        change,
    })
}
