//! Explains why the kernel did not mount a filesystem.

use super::Error;
use super::observe::CallContext;
use crate::host::{HostError, MountDevice, filesystem};

/// Maps the error of mount(2). EINVAL can mean an unsupported mount option.
pub(super) fn explain(call: CallContext<'_>, request: &MountDevice, error: HostError) -> Error {
    let volume = || call.id().clone();
    // The kernel cannot mount a filesystem with a dirty journal from a read-only device, not even read-only.
    if request.read_only && error.io_kind() == Some(std::io::ErrorKind::ReadOnlyFilesystem) {
        return Error::JournalNotReplayed {
            volume: volume(),
            source: error,
        };
    }
    if error.is_corruption() {
        let device = &request.device.path;
        return Error::FilesystemDamaged {
            volume: volume(),
            device: request.device.to_string(),
            reason: format!(
                "the kernel cannot mount it, or replay its journal ({}); run `{}` manually",
                crate::base::error_chain(&error),
                filesystem::repair_command(request.filesystem, device)
            ),
        };
    }
    if error.io_kind() == Some(std::io::ErrorKind::InvalidInput) && !request.flags.is_empty() {
        return Error::MountOptionsRejected {
            volume: volume(),
            flags: request.flags.clone(),
            source: error,
        };
    }
    call.failed()(error)
}
