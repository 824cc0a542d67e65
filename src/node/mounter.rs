//! Mounts the filesystem of a device, and verifies that the kernel mounted this device.

use std::io::ErrorKind;

use super::observe::{CallContext, quick};
use super::tools::Tools;
use super::{Error, Result};
use crate::base::{Deadline, error_chain};
use crate::linux::{Device, Host, HostError, MountDevice, filesystem};
use crate::model::Filesystem;

/// Mounts a filesystem.
///
/// # Errors
/// The kernel rejects the filesystem or its options, or mounts another device. Then nothing stays mounted.
pub(super) async fn mount(tools: &Tools, call: CallContext<'_>, request: &MountDevice) -> Result<()> {
    let host = &*tools.host;
    match host.mount(Deadline::never(), request).await {
        Ok(()) => {}
        Err(error) if is_duplicate(request, &error) => {
            mount_after_forget(tools, call, request).await?;
        }
        Err(error) => return Err(explain(host, call, request, error).await),
    }
    if is_mounted(host, call, request).await? {
        return Ok(());
    }
    let unmounted = host.unmount(Deadline::never(), &request.target).await;
    if let Err(error) = unmounted {
        let error = error_chain(&error);
        tracing::error!(disk.id = %call.id(), error, "cannot unmount the filesystem of another device");
    }
    let reason = "the kernel mounted the filesystem of another device";
    Err(call.device_changed(&request.device, reason))
}

/// Mounts a btrfs that the kernel rejects as a copy of a registered device. Unless that is mounted, the registration is
/// removed first.
async fn mount_after_forget(tools: &Tools, call: CallContext<'_>, request: &MountDevice) -> Result<()> {
    let (host, device) = (&*tools.host, &request.device);
    let mounted = call.wrap(host.btrfs_devices_with_same_uuid(quick(), device)).await?;
    let duplicate = |others: String| Error::DuplicateFilesystem {
        volume: call.id().clone(),
        device: device.to_string(),
        others,
    };
    if !mounted.is_empty() {
        return Err(duplicate(mounted.join(", ")));
    }
    let forget = filesystem::forget_btrfs_devices();
    tools.run(call, "forget unmounted btrfs devices", &forget).await?;
    match host.mount(Deadline::never(), request).await {
        Ok(()) => Ok(()),
        Err(error) if is_duplicate(request, &error) => {
            Err(duplicate("a device that the kernel has registered".to_owned()))
        }
        Err(error) => Err(explain(host, call, request, error).await),
    }
}

/// Whether the filesystem at the target is that of the device.
async fn is_mounted(host: &dyn Host, call: CallContext<'_>, request: &MountDevice) -> Result<bool> {
    let device = &request.device;
    if request.filesystem == Filesystem::Btrfs {
        let mounted = host.is_btrfs_mounted(quick(), device).await;
        return mounted.map_err(call.failed());
    }
    let mounts = host.mounts(quick()).await.map_err(call.failed())?;
    let top = mounts.iter().rfind(|mount| mount.point == request.target);
    Ok(top.is_some_and(|mount| mount.is_of(device)))
}

/// Whether the kernel rejects a btrfs because it has registered another device with the same UUIDs.
fn is_duplicate(request: &MountDevice, error: &HostError) -> bool {
    request.filesystem == Filesystem::Btrfs && error.io_kind() == Some(ErrorKind::AlreadyExists)
}

/// Maps the error of mount(2). EINVAL means an unsupported mount option or an unsupported feature of the filesystem.
async fn explain(host: &dyn Host, call: CallContext<'_>, request: &MountDevice, error: HostError) -> Error {
    let volume = call.id().clone();
    let device = request.device.to_string();
    let filesystem = request.filesystem;
    let Some(kind) = error.io_kind() else {
        return call.failed()(error);
    };
    // The kernel cannot mount a filesystem with a dirty journal from a read-only device, not even read-only. For btrfs,
    // it reports EIO.
    if request.read_only
        && (kind == ErrorKind::ReadOnlyFilesystem || error.is_eio() && has_btrfs_log(host, &request.device).await)
    {
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
                error_chain(&error),
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

/// Whether the device is read-only and has a btrfs whose log must be replayed.
async fn has_btrfs_log(host: &dyn Host, device: &Device) -> bool {
    let read_only = host.block_setting(quick(), device, "ro").await;
    let superblocks = host.superblocks(quick(), device).await;
    read_only.is_ok_and(|value| value.as_deref() == Some("1"))
        && superblocks.is_ok_and(|superblocks| superblocks.has_btrfs_log)
}
