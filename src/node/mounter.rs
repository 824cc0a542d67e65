//! Mounts the filesystem of a device, and verifies that the kernel mounted this device.

use std::io::ErrorKind;

use super::check::damaged;
use super::observe::{CallContext, quick};
use super::tools::Tools;
use super::{Error, Result};
use crate::base::{Deadline, error_chain};
use crate::linux::{Device, HostError, MountRequest, filesystem};
use crate::model::{Failure, Filesystem};

/// Mounts a filesystem.
///
/// # Errors
/// The kernel rejects the filesystem or its options, or mounts another device. Then nothing stays mounted.
pub(super) async fn mount(tools: &Tools, call: CallContext<'_>, device: &Device, request: &MountRequest) -> Result<()> {
    match call.host.mount(Deadline::never(), device, request).await {
        Ok(()) => {}
        Err(error) if is_duplicate(request, &error) => mount_after_forget(tools, call, device, request).await?,
        Err(error) => return Err(explain(call, device, request, error).await),
    }
    if is_mounted(call, device, request).await? {
        return Ok(());
    }
    if let Err(error) = call.host.unmount(Deadline::never(), &request.target).await {
        let error = error_chain(&error);
        tracing::error!(disk.id = %call.id(), error, "cannot unmount the filesystem of another device");
    }
    Err(call.device_changed(device, "the kernel mounted the filesystem of another device"))
}

/// Mounts a btrfs that the kernel rejects as a copy of a registered device. Unless that is mounted, the registration is
/// removed first.
async fn mount_after_forget(
    tools: &Tools,
    call: CallContext<'_>,
    device: &Device,
    request: &MountRequest,
) -> Result<()> {
    let host = call.host;
    let mounted = call.wrap(host.btrfs_devices_with_same_uuid(quick(), device)).await?;
    let duplicate = |others: &str| {
        let message = format!(
            "its btrfs on {device} has the UUID of the filesystem that is mounted from {others}, as a disk restored \
             from a snapshot has, and this kernel cannot mount both (Linux 6.7 can)"
        );
        call.error(Failure::DuplicateFilesystem, message)
    };
    if !mounted.is_empty() {
        return Err(duplicate(&mounted.join(", ")));
    }
    let forget = filesystem::forget_btrfs_devices();
    tools.run(call, "forget unmounted btrfs devices", &forget).await?;
    match host.mount(Deadline::never(), device, request).await {
        Ok(()) => Ok(()),
        Err(error) if is_duplicate(request, &error) => Err(duplicate("a device that the kernel has registered")),
        Err(error) => Err(explain(call, device, request, error).await),
    }
}

async fn is_mounted(call: CallContext<'_>, device: &Device, request: &MountRequest) -> Result<bool> {
    if request.filesystem == Filesystem::Btrfs {
        return call.wrap(call.host.is_btrfs_mounted(quick(), device)).await;
    }
    let mounts = call.mounts().await?;
    let top = mounts.iter().rfind(|mount| mount.point == request.target);
    Ok(top.is_some_and(|mount| mount.is_of(device)))
}

/// Whether the kernel rejects a btrfs because it has registered another device with the same UUIDs.
fn is_duplicate(request: &MountRequest, error: &HostError) -> bool {
    request.filesystem == Filesystem::Btrfs && error.io_kind() == Some(ErrorKind::AlreadyExists)
}

/// Maps the error of mount(2). EINVAL means an unsupported mount option or an unsupported feature of the filesystem.
async fn explain(call: CallContext<'_>, device: &Device, request: &MountRequest, error: HostError) -> Error {
    let MountRequest { filesystem, flags, .. } = request;
    let Some(kind) = error.io_kind() else {
        return call.failed()(error);
    };
    // The kernel cannot mount a filesystem with a dirty journal from a read-only device, not even read-only. For btrfs,
    // it reports EIO.
    if request.read_only
        && (kind == ErrorKind::ReadOnlyFilesystem || error.is_eio() && has_btrfs_log(call, device).await)
    {
        let option = match filesystem {
            Filesystem::Ext4 | Filesystem::Ext3 => "noload",
            Filesystem::Xfs => "norecovery",
            Filesystem::Btrfs => "rescue=nologreplay",
        };
        let message = format!(
            "its filesystem cannot be mounted: its journal must be replayed, but the disk is attached read-only; mount \
             it writable once, or set the mount option {option}"
        );
        return call.error(Failure::JournalNotReplayed, message).with_source(error);
    }
    if error.is_corruption() {
        let reason = format!(
            "the kernel cannot mount it, or replay its journal ({}); run `{}` manually",
            error_chain(&error),
            filesystem::repair_command(*filesystem, &device.path)
        );
        return damaged(call, device, &reason);
    }
    let rejected = if kind == ErrorKind::InvalidInput && !flags.is_empty() {
        let message = format!(
            "the kernel of this node rejects the mount options \"{flags}\", or features of the filesystem; its log has \
             the reason"
        );
        call.error(Failure::MountOptionsRejected, message)
    } else {
        let message = format!(
            "the kernel of this node cannot mount the {filesystem} on {device}; its log has the reason, such as \
             features that it does not support"
        );
        call.error(Failure::HostError, message)
    };
    rejected.with_source(error)
}

/// Whether the device is read-only and has a btrfs whose log must be replayed.
async fn has_btrfs_log(call: CallContext<'_>, device: &Device) -> bool {
    let read_only = call.host.block_setting(quick(), device, "ro").await;
    let superblocks = call.host.superblocks(quick(), device).await;
    read_only.is_ok_and(|value| value.as_deref() == Some("1"))
        && superblocks.is_ok_and(|superblocks| superblocks.has_btrfs_log)
}
