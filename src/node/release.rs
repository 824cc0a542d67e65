//! Unmounts, and waits until the kernel no longer uses a device. Errors name the devices and mounts that keep it in
//! use, or how to find the process.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::device_check::is_removed;
use super::in_use::{SEARCH_TIMEOUT, in_use};
use super::io_watch::IoWatch;
use super::observe::{CallContext, quick};
use super::{Error, Result};
use crate::base::{Deadline, InPhase, Phase};
use crate::host::{Device, FlushOutcome, Host, Mount, Sought};

/// Retry interval. The kernel reports unmounts in this mount namespace, but not that a process closes its last file or
/// that another mount namespace ends.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Unmounts, and waits for the release of devices.
#[derive(Debug, Clone)]
pub(super) struct Unmounter {
    pub(super) host: Arc<dyn Host>,
    pub(super) io: IoWatch,
}

impl Unmounter {
    /// Removes the topmost mount at a path, which is of this device. Waits until the deadline while the mount is busy.
    pub(super) async fn unmount(
        &self,
        call: CallContext<'_>,
        device: &Device,
        path: &Path,
        deadline: Deadline,
    ) -> Result<()> {
        tracing::info!(disk.id = %call.id(), "{}: unmount {}", call.operation, path.display());
        loop {
            // The last unmount of a filesystem writes all dirty pages, however long that takes.
            let unmount = self.host.unmount(Deadline::never(), path);
            let step = format!("unmounting {}", path.display());
            let _step = self.io.operations.step(call.id(), step);
            let unmount = async { unmount.await.map_err(call.failed()) };
            let unmount = self.io.observe(call, device, None, unmount);
            let error = match unmount.in_phase(Phase::Unmount).await {
                Err(Error::Host { source, .. })
                    if source.io_kind() == Some(ErrorKind::ResourceBusy) =>
                {
                    source
                }
                other => return other,
            };
            if !self.wait_for_retry(deadline, call).await? {
                tracing::debug!(path = %path.display(), error = %error, "the mount is still busy");
                let mounts = self.host.mounts(quick()).await.map_err(call.failed())?;
                let top: Option<&Mount> = mounts.iter().rfind(|mount| mount.point == path);
                let Some(top) = top else { continue };
                let what = format!("the mount at {}", path.display());
                return Err(in_use(self.host.as_ref(), call, what, &Sought::mount(top)).await);
            }
        }
    }

    /// Removes the topmost mount at a path whose filesystem can no longer write. If it is busy, detaches it lazily
    /// (`MNT_DETACH`) instead of waiting. `device` is that of a filesystem that has shut down.
    pub(super) async fn unmount_dead(
        &self,
        call: CallContext<'_>,
        device: Option<&Device>,
        path: &Path,
        deadline: Deadline,
    ) -> Result<()> {
        if let Some(device) = device {
            self.io.check_responds(call, device, deadline).await?;
        }
        tracing::info!(
            disk.id = %call.id(),
            "{}: unmount {}, whose filesystem can no longer write", call.operation, path.display()
        );
        let step = format!("unmounting {}", path.display());
        let _step = self.io.operations.step(call.id(), step);
        let unmount = self.host.unmount(Deadline::never(), path);
        let unmount = async { unmount.await.map_err(call.failed()) };
        let unmount = unmount.in_phase(Phase::Unmount);
        let unmounted = match device {
            Some(device) => self.io.observe(call, device, None, unmount).await,
            None => unmount.await,
        };
        match unmounted {
            Err(Error::Host { source, .. })
                if source.io_kind() == Some(ErrorKind::ResourceBusy) =>
            {
                let mounts = self.host.mounts(quick()).await.map_err(call.failed())?;
                let is_below =
                    |mount: &&Mount| mount.point != path && mount.point.starts_with(path);
                if let (Some(top), Some(_)) = (
                    mounts.iter().rfind(|mount| mount.point == path),
                    mounts.iter().find(is_below),
                ) {
                    // Mounts below would be detached too, and their filesystems may still be usable.
                    let what = format!("the mount at {}", path.display());
                    return Err(in_use(self.host.as_ref(), call, what, &Sought::mount(top)).await);
                }
                tracing::warn!(
                    disk.id = %call.id(),
                    path = %path.display(),
                    "the filesystem of a busy mount can no longer write; the mount is detached lazily"
                );
                self.host.detach(quick(), path).await.map_err(call.failed())
            }
            other => other,
        }
    }

    /// Writes the cached data of a device, which other mounts may keep in use.
    pub(super) async fn flush(
        &self,
        call: CallContext<'_>,
        device: &Device,
        deadline: Deadline,
    ) -> Result<()> {
        self.io.check_responds(call, device, deadline).await?;
        let flush = self.host.flush(Deadline::never(), device);
        let step = format!("flushing {device}");
        let _step = self.io.operations.step(call.id(), step);
        let flush = async { flush.await.map_err(call.failed()) };
        let flushed = self.io.observe(call, device, None, flush).await;
        flushed.map(drop)
    }

    /// Waits until nothing in the kernel uses the device and all data is written. The filesystem may still be mounted
    /// in another mount namespace; unwritten data would be lost when the disk is detached.
    pub(super) async fn wait_released(
        &self,
        call: CallContext<'_>,
        device: &Device,
        deadline: Deadline,
    ) -> Result<()> {
        loop {
            let flush = self.host.flush_if_free(Deadline::never(), device);
            let step = format!("flushing {device}");
            let _step = self.io.operations.step(call.id(), step);
            let flush = async { flush.await.map_err(call.failed()) };
            let flush = self.io.observe(call, device, None, flush);
            let flushed = flush.in_phase(Phase::Release).await;
            let may_be_removed = matches!(flushed, Ok(FlushOutcome::Removed) | Err(_));
            if may_be_removed && is_removed(&*self.host, call, device).await? {
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
            if !self.wait_for_retry(deadline, call).await? {
                let sought = Sought::device(device);
                return Err(in_use(self.host.as_ref(), call, device.to_string(), &sought).await);
            }
        }
    }

    /// Waits for a mount event or the next retry. Returns false if only the time for the search is left.
    async fn wait_for_retry(&self, deadline: Deadline, call: CallContext<'_>) -> Result<bool> {
        if deadline.remaining() <= SEARCH_TIMEOUT {
            return Ok(false);
        }
        let changed = self
            .host
            .mounts_change(deadline.at_most(RETRY_INTERVAL))
            .await;
        changed.map(|()| true).map_err(call.failed())
    }
}
