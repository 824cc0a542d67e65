//! ValidateVolumeCapabilities. Unsupported capabilities and parameters are part of the response, not an error (CSI).

use super::capability::{self, Capability};
use super::create_volume::check_mounts;
use super::error::{Error, Result};
use super::field;
use crate::csi::param::{Class, mutable};
use crate::csi::proto::ValidateVolumeCapabilitiesRequest;
use crate::model::{DiskId, context as keys};

#[derive(Debug)]
pub(crate) struct Requested {
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) class: Class,
    pub(crate) multi_attach: Option<bool>,
}

/// The disk, and the request or the reason why no disk can match it.
pub(crate) fn validate(message: &ValidateVolumeCapabilitiesRequest) -> Result<(DiskId, Result<Requested>)> {
    field::required("volume_id", &message.volume_id)?;
    if message.volume_capabilities.is_empty() {
        return Err(Error::missing("volume_capabilities"));
    }
    Ok((field::id("volume_id", &message.volume_id)?, requested(message)))
}

fn requested(message: &ValidateVolumeCapabilitiesRequest) -> Result<Requested> {
    let capabilities = capability::all(&message.volume_capabilities)?;
    let change = mutable::read(&message.mutable_parameters)?;
    let mut class = Class::read_with(&message.parameters, &change)?;
    let volume_context = &message.volume_context;
    class.fs_type = field::context_filesystem(volume_context)?.or(class.fs_type);
    check_mounts(&capabilities, &class)?;
    let flag = |key| field::flag("volume_context", volume_context, key);
    flag(keys::READ_ONLY)?;
    field::tuning(volume_context)?;
    Ok(Requested {
        capabilities,
        class,
        multi_attach: flag(keys::MULTI_ATTACH)?,
    })
}
