//! Unmounts, and waits until the kernel no longer uses a device. Errors name the devices and mounts that keep it in
//! use, or how to find the process.

use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use super::device_check::is_removed;
use super::io_watch::IoWatch;
use super::observe::{CallContext, quick};
use super::{Error, Result};
use crate::base::{Deadline, InPhase, Phase, error_chain};
use crate::linux::{Device, FlushOutcome, HolderQuery, Mount, holder};
use crate::model::Failure;

/// Retry interval. The kernel reports unmounts in this mount namespace, but not that a process closes its last file or
/// that another mount namespace ends.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Timeout of the search for the users. A wait for a release ends this long before the deadline, so that the error is
/// returned in time.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(1);

/// Removes the topmost mount at a path, which is of this device. Waits until the deadline while the mount is busy.
pub(super) async fn unmount(io: &IoWatch, call: CallContext<'_>, device: &Device, path: &Path) -> Result<()> {
    tracing::info!(disk.id = %call.id(), "{}: unmount {}", call.operation, path.display());
    // Also while the mount is busy.
    let _step = io.operations.step(call.id(), unmounting(path));
    loop {
        let unmounted = try_unmount(io, call, Some(device), path).await;
        if !is_busy(&unmounted) {
            return unmounted;
        }
        if !wait_for_retry(call).await? {
            let mounts = call.mounts().await?;
            if let Some(top) = mounts.iter().rfind(|mount| mount.point == path) {
                return Err(mount_in_use(call, top).await);
            }
        }
    }
}

/// The last unmount of a filesystem writes all dirty pages, however long that takes.
async fn try_unmount(io: &IoWatch, call: CallContext<'_>, device: Option<&Device>, path: &Path) -> Result<()> {
    let unmount = call.host.unmount(Deadline::never(), path).in_phase(Phase::Unmount);
    match device {
        Some(device) => io.observe_host(call, device, unmounting(path), unmount).await,
        None => {
            let _step = io.operations.step(call.id(), unmounting(path));
            call.wrap(unmount).await
        }
    }
}

/// Removes the topmost mount at a path whose filesystem can no longer write. If it is busy, detaches it lazily
/// (`MNT_DETACH`) instead of waiting. `device` is that of a filesystem that has shut down.
pub(super) async fn unmount_dead(
    io: &IoWatch,
    call: CallContext<'_>,
    device: Option<&Device>,
    path: &Path,
) -> Result<()> {
    if let Some(device) = device {
        io.check_responds(call, device).await?;
    }
    tracing::info!(
        disk.id = %call.id(),
        "{}: unmount {}, whose filesystem can no longer write", call.operation, path.display()
    );
    let unmounted = try_unmount(io, call, device, path).await;
    if !is_busy(&unmounted) {
        return unmounted;
    }
    let mounts = call.mounts().await?;
    let top = mounts.iter().rfind(|mount| mount.point == path);
    let is_below = |mount: &Mount| mount.point != path && mount.point.starts_with(path);
    if let Some(top) = top.filter(|_| mounts.iter().any(is_below)) {
        // Mounts below would be detached too, and their filesystems may still be usable.
        return Err(mount_in_use(call, top).await);
    }
    tracing::warn!(
        disk.id = %call.id(),
        path = %path.display(),
        "the filesystem of a busy mount can no longer write; the mount is detached lazily"
    );
    call.wrap(call.host.detach(quick(), path)).await
}

/// Writes the cached data of a device, which other mounts may keep in use.
pub(super) async fn flush(io: &IoWatch, call: CallContext<'_>, device: &Device) -> Result<()> {
    io.check_responds(call, device).await?;
    let flush = call.host.flush(Deadline::never(), device);
    let flush = io.observe_host(call, device, flushing(device), flush);
    flush.await.map(drop)
}

/// Waits until nothing in the kernel uses the device and all data is written. The filesystem may still be mounted
/// in another mount namespace; unwritten data would be lost when the disk is detached.
pub(super) async fn wait_released(io: &IoWatch, call: CallContext<'_>, device: &Device) -> Result<()> {
    // Also while the device is in use.
    let _step = io.operations.step(call.id(), flushing(device));
    loop {
        let flush = call.host.flush_if_free(Deadline::never(), device);
        let flush = io.observe_host(call, device, flushing(device), flush);
        let flushed = flush.in_phase(Phase::Release).await;
        let may_be_removed = matches!(flushed, Ok(FlushOutcome::Removed) | Err(_));
        if may_be_removed && is_removed(call, device).await? {
            return Ok(());
        }
        match flushed? {
            FlushOutcome::Flushed => return Ok(()),
            // The filesystem may still be mounted elsewhere, and it is unknown whether all data is written.
            FlushOutcome::Removed => {
                let reason = "the device still exists in sysfs, but its node is missing or belongs to another device";
                return Err(call.device_changed(device, reason));
            }
            FlushOutcome::InUse => {}
        }
        if !wait_for_retry(call).await? {
            return Err(in_use(call, device, &HolderQuery::device(device)).await);
        }
    }
}

/// Waits for a mount event or the next retry. Returns false if only the time for the search is left.
async fn wait_for_retry(call: CallContext<'_>) -> Result<bool> {
    if call.deadline.remaining() <= SEARCH_TIMEOUT {
        return Ok(false);
    }
    let changed = call.host.mounts_change(call.deadline.at_most(RETRY_INTERVAL)).await;
    changed.map(|()| true).map_err(call.failed())
}

async fn mount_in_use(call: CallContext<'_>, mount: &Mount) -> Error {
    let resource = format!("the mount at {}", mount.point.display());
    in_use(call, resource, &HolderQuery::mount(mount)).await
}

fn unmounting(path: &Path) -> String {
    format!("unmounting {}", path.display())
}

fn flushing(device: &Device) -> String {
    format!("flushing {device}")
}

fn is_busy(unmounted: &Result<()>) -> bool {
    matches!(unmounted, Err(Error::Host { source, .. }) if source.io_kind() == Some(ErrorKind::ResourceBusy))
}

/// Searches for the users of a resource, which is a mount or a device.
pub(super) async fn in_use(call: CallContext<'_>, resource: impl Display, query: &HolderQuery) -> Error {
    let by = match call.host.users(Deadline::after(SEARCH_TIMEOUT), query).await {
        Ok(users) => holder::list(&users, query),
        Err(error) => format!("an unknown user ({})", error_chain(&error)),
    };
    let message = format!("{} is refused: {resource} is in use by {by}", call.operation);
    call.error(Failure::DeviceInUse, message)
}
