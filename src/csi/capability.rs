//! Which volume capabilities can be had.

use tonic::Status;

use super::proto::VolumeCapability;
use super::proto::volume_capability::access_mode::Mode;

/// Whether every one of these capabilities can be had at once, each with an access type and mode.
///
/// # Errors
/// `INVALID_ARGUMENT` naming what is missing or not supported.
pub fn check(capabilities: &[VolumeCapability]) -> Result<(), Status> {
    if capabilities.is_empty() {
        return Err(Status::invalid_argument(
            "volume_capabilities is required and empty",
        ));
    }
    for capability in capabilities {
        if capability.access_type.is_none() {
            return Err(Status::invalid_argument(
                "volume_capability.access_type is required: block or mount",
            ));
        }
        let mode = capability
            .access_mode
            .as_ref()
            .map_or(Mode::Unknown, |mode| mode.mode());
        match mode {
            Mode::SingleNodeWriter
            | Mode::SingleNodeReaderOnly
            | Mode::SingleNodeSingleWriter
            | Mode::SingleNodeMultiWriter => {}
            Mode::Unknown => {
                return Err(Status::invalid_argument(
                    "volume_capability.access_mode is required",
                ));
            }
            Mode::MultiNodeReaderOnly
            | Mode::MultiNodeSingleWriter
            | Mode::MultiNodeMultiWriter => {
                return Err(Status::invalid_argument(format!(
                    "access mode {} is not supported: a disk is attached to one node at a time; \
                     ReadWriteOnce and ReadWriteOncePod are supported",
                    mode.as_str_name()
                )));
            }
        }
    }
    Ok(())
}
