//! ValidateVolumeCapabilities. What is wrong with capabilities and parameters is part of the answer (CSI).

use super::capability::{self, Capability};
use super::create_volume::mounts_fit;
use super::error::Error;
use super::{Result, context, field};
use crate::csi::param::{Class, mutable};
use crate::csi::proto::ValidateVolumeCapabilitiesRequest;
use crate::csi::proto::validate_volume_capabilities_response::Confirmed;
use crate::model::{DiskId, context as keys};

#[derive(Debug)]
pub(crate) struct Validate {
    pub(crate) disk: DiskId,
    pub(crate) asked: Result<Asked>,
    /// The answer if the disk is what is asked about.
    pub(crate) confirmed: Confirmed,
}

/// What the disk should be.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) class: Class,
    /// `multiAttach` of `volume_context`.
    pub(crate) multi_attach: Option<bool>,
}

pub(crate) fn validate(message: &ValidateVolumeCapabilitiesRequest) -> Result<Validate> {
    field::required("volume_id", &message.volume_id)?;
    if message.volume_capabilities.is_empty() {
        return Err(Error::Missing("volume_capabilities".into()));
    }
    Ok(Validate {
        disk: field::id("volume_id", &message.volume_id)?,
        asked: asked(message),
        confirmed: Confirmed {
            volume_context: message.volume_context.clone(),
            volume_capabilities: message.volume_capabilities.clone(),
            parameters: message.parameters.clone(),
            mutable_parameters: message.mutable_parameters.clone(),
        },
    })
}

fn asked(message: &ValidateVolumeCapabilitiesRequest) -> Result<Asked> {
    let capabilities = capability::all(&message.volume_capabilities)?;
    let change = mutable::read(&message.mutable_parameters)?;
    let mut class = Class::read_with(&message.parameters, &change)?;
    let volume_context = &message.volume_context;
    class.fs_type = context::filesystem(volume_context)?.or(class.fs_type);
    mounts_fit(&capabilities, &class)?;
    let flag = |key| context::flag("volume_context", volume_context, key);
    flag(keys::READ_ONLY)?;
    context::tuning(volume_context)?;
    Ok(Asked {
        capabilities,
        class,
        multi_attach: flag(keys::MULTI_ATTACH)?,
    })
}
