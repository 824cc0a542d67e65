//! Mounts the filesystem of a device, and verifies that the kernel mounted this device.

use std::io::ErrorKind;
use std::sync::Arc;

use super::mount_failure;
use super::observe::{CallContext, quick};
use super::tools::Tools;
use super::{Error, Result};
use crate::base::{Deadline, error_chain};
use crate::host::{Device, Host, HostError, MountDevice, filesystem};
use crate::model::Filesystem;

#[derive(Debug, Clone)]
pub(super) struct Mounter {
    pub(super) host: Arc<dyn Host>,
    pub(super) tools: Tools,
}

impl Mounter {
    /// Mounts a filesystem.
    ///
    /// # Errors
    /// The kernel rejects the filesystem or its options, or mounts another device. Then nothing stays mounted.
    pub(super) async fn mount(&self, call: CallContext<'_>, request: &MountDevice) -> Result<()> {
        match self.try_mount(request).await {
            Ok(()) => {}
            Err(error) if is_duplicate(request, &error) => {
                self.mount_after_forget(call, request).await?;
            }
            Err(error) => return Err(self.explain(call, request, error).await),
        }
        if self.is_mounted(call, request).await? {
            return Ok(());
        }
        let unmounted = self.host.unmount(quick(), &request.target).await;
        if let Err(error) = unmounted {
            let error = error_chain(&error);
            tracing::error!(disk.id = %call.id(), error, "cannot unmount the filesystem of another device");
        }
        Err(call.failed()(HostError::DeviceChanged {
            device: request.device.path.clone(),
            reason: "the kernel mounted the filesystem of another device".to_owned(),
        }))
    }

    async fn try_mount(&self, request: &MountDevice) -> std::result::Result<(), HostError> {
        let deadline = Deadline::never();
        self.host.mount(deadline, request).await
    }

    async fn explain(
        &self,
        call: CallContext<'_>,
        request: &MountDevice,
        error: HostError,
    ) -> Error {
        // For btrfs, the kernel reports EIO.
        let has_log = error.is_eio() && self.has_btrfs_log(&request.device).await;
        mount_failure::explain(call, request, has_log, error)
    }

    /// Whether the device is read-only and has a btrfs whose log must be replayed.
    async fn has_btrfs_log(&self, device: &Device) -> bool {
        let read_only = self.host.block_setting(quick(), device, "ro").await;
        let superblocks = self.host.superblocks(quick(), device).await;
        read_only.is_ok_and(|value| value.as_deref() == Some("1"))
            && superblocks.is_ok_and(|superblocks| superblocks.has_btrfs_log)
    }

    /// Mounts a btrfs that the kernel takes for a second copy of a device that it has registered. If that one is not
    /// mounted, the kernel forgets it on request.
    async fn mount_after_forget(&self, call: CallContext<'_>, request: &MountDevice) -> Result<()> {
        let device = &request.device;
        let mounted = self
            .host
            .btrfs_devices_with_same_uuid(quick(), device)
            .await;
        let mounted = mounted.map_err(call.failed())?;
        let duplicate = || Error::DuplicateFilesystem {
            volume: call.id().clone(),
            device: device.to_string(),
            others: match mounted.as_slice() {
                [] => "a device that the kernel has registered".to_owned(),
                names => names.join(", "),
            },
        };
        if !mounted.is_empty() {
            return Err(duplicate());
        }
        let forget = filesystem::forget_btrfs_devices();
        self.tools
            .run(call, "forget unmounted btrfs devices", &forget)
            .await?;
        match self.try_mount(request).await {
            Ok(()) => Ok(()),
            Err(error) if is_duplicate(request, &error) => Err(duplicate()),
            Err(error) => Err(self.explain(call, request, error).await),
        }
    }

    /// Whether the filesystem at the target is that of the device.
    async fn is_mounted(&self, call: CallContext<'_>, request: &MountDevice) -> Result<bool> {
        let device = &request.device;
        if request.filesystem == Filesystem::Btrfs {
            let mounted = self.host.is_btrfs_mounted(quick(), device).await;
            return mounted.map_err(call.failed());
        }
        let mounts = self.host.mounts(quick()).await.map_err(call.failed())?;
        let top = mounts.iter().rfind(|mount| mount.point == request.target);
        Ok(top.is_some_and(|mount| mount.is_of(device)))
    }
}

/// Whether the kernel rejects a btrfs because it has registered another device with the same UUIDs.
fn is_duplicate(request: &MountDevice, error: &HostError) -> bool {
    request.filesystem == Filesystem::Btrfs && error.io_kind() == Some(ErrorKind::AlreadyExists)
}
