//! Explains why the kernel did not mount a filesystem.

use std::io::ErrorKind;

use super::Error;
use super::observe::CallContext;
use crate::host::{HostError, MountDevice, filesystem};
use crate::model::Filesystem;

/// Maps the error of mount(2). EINVAL means an unsupported mount option or an unsupported feature of the filesystem.
/// `has_btrfs_log`: the kernel cannot replay the log of a btrfs, because the device is read-only.
pub(super) fn explain(
    call: CallContext<'_>,
    request: &MountDevice,
    has_btrfs_log: bool,
    error: HostError,
) -> Error {
    let volume = call.id().clone();
    let device = request.device.to_string();
    let filesystem = request.filesystem;
    let Some(kind) = error.io_kind() else {
        return call.failed()(error);
    };
    // The kernel cannot mount a filesystem with a dirty journal from a read-only device, not even read-only.
    if request.read_only && (has_btrfs_log || kind == ErrorKind::ReadOnlyFilesystem) {
        let option = match filesystem {
            Filesystem::Ext4 | Filesystem::Ext3 => "noload",
            Filesystem::Xfs => "norecovery",
            Filesystem::Btrfs => "rescue=nologreplay",
        };
        return Error::JournalNotReplayed {
            volume,
            option,
            source: error,
        };
    }
    if error.is_corruption() {
        return Error::FilesystemDamaged {
            volume,
            device,
            reason: format!(
                "the kernel cannot mount it, or replay its journal ({}); run `{}` manually",
                crate::base::error_chain(&error),
                filesystem::repair_command(filesystem, &request.device.path)
            ),
        };
    }
    if kind == ErrorKind::InvalidInput && !request.flags.is_empty() {
        return Error::MountOptionsRejected {
            volume,
            flags: request.flags.clone(),
            source: error,
        };
    }
    Error::Mount {
        volume,
        device,
        filesystem,
        source: error,
    }
}
