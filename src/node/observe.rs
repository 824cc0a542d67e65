//! Observations of the host, with shared errors and timeouts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::path::VolumePath;
use super::plan;
use super::request::Volume;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Device, Entry, FlushOutcome, HostError, Mount};
use crate::model::DiskId;

/// Timeout of a call that only reads kernel memory or changes a directory entry.
const QUICK: Duration = Duration::from_secs(30);

/// The deadline of such a call. It is independent of the deadline of the RPC: an operation that has started continues
/// to a consistent state.
pub(super) fn quick() -> Deadline {
    Deadline::after(QUICK)
}

/// The volume and operation, for error messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallContext<'a> {
    volume: &'a DiskId,
    operation: &'static str,
}

impl<'a> CallContext<'a> {
    pub(super) fn new(volume: &'a Volume, operation: &'static str) -> Self {
        Self {
            volume: &volume.id,
            operation,
        }
    }

    pub(super) fn volume(self) -> &'a DiskId {
        self.volume
    }

    pub(super) fn failed(self) -> impl FnOnce(HostError) -> Error {
        let volume = self.volume.clone();
        let operation = self.operation;
        move |source| Error::Host {
            volume,
            operation,
            source,
        }
    }
}

/// The state of a path: directory entry and mount.
#[derive(Debug, Clone)]
pub(super) struct PathState {
    /// The path as in the mount table.
    pub(super) path: PathBuf,
    /// The directory entry. Under a mount that does not respond, it is reported as missing.
    pub(super) entry: Entry,
    /// The topmost mount at the path.
    pub(super) mount: Option<Mount>,
    /// Whether reading the path fails with `EIO`.
    pub(super) dead: bool,
}

impl Node {
    /// Observes a path, given the mount table.
    pub(super) async fn path_state(
        &self,
        path: &VolumePath,
        mounts: &[Mount],
        call: CallContext<'_>,
    ) -> Result<PathState> {
        let path = self.resolve_path(path, call).await?;
        let mount = mounts.iter().rfind(|mount| mount.point == path).cloned();
        let mut dead = false;
        let entry = match self.host.entry(quick(), &path).await {
            Ok(entry) => entry,
            Err(error @ HostError::Symlink { .. }) => return Err(call.failed()(error)),
            // A filesystem whose device was removed does not respond, but must be unmounted anyway.
            Err(error) if mount.is_some() => {
                tracing::warn!(path = %path.display(), error = %error, "a mounted path does not respond");
                dead = error.is_eio();
                Entry::Missing
            }
            Err(error) => return Err(call.failed()(error)),
        };
        Ok(PathState {
            path,
            entry,
            mount,
            dead,
        })
    }

    /// All devices, to identify the device of the mount at a path, and whether that device is in use. Empty if the
    /// mount is of the volume's own device.
    pub(super) async fn other_devices(
        &self,
        device: Option<&Device>,
        path_state: &PathState,
        call: CallContext<'_>,
    ) -> Result<(Vec<Device>, bool)> {
        let Some(mount) = &path_state.mount else {
            return Ok((Vec::new(), true));
        };
        if device.is_some_and(|device| plan::is_mount_of(device, path_state, mount)) {
            return Ok((Vec::new(), true));
        }
        let devices = self.host.devices(quick()).await.map_err(call.failed())?;
        // A bind mount of a device node does not use the device. A device whose state is unknown may be in use.
        let in_use = match (
            plan::backing_device(&devices, path_state, mount),
            path_state.entry,
        ) {
            (None, _) | (Some(_), Entry::BlockDevice(_)) => true,
            (Some(backing), _) => {
                let flushed = self.host.flush_if_free(quick(), backing).await;
                !matches!(flushed, Ok(FlushOutcome::Flushed))
            }
        };
        Ok((devices, in_use))
    }

    pub(super) async fn mounts(&self, call: CallContext<'_>) -> Result<Vec<Mount>> {
        self.host.mounts(quick()).await.map_err(call.failed())
    }
}

/// Mounts of the device's filesystem, except at these paths.
pub(super) fn mounts_of(device: &Device, mounts: &[Mount], except: &[&Path]) -> Vec<Mount> {
    mounts
        .iter()
        .filter(|mount| mount.is_of(device) && !except.contains(&mount.point.as_path()))
        .cloned()
        .collect()
}

/// Bind mounts of the device node, except at this path.
pub(super) fn device_node_mounts(device: &Device, mounts: &[Mount], except: &Path) -> Vec<Mount> {
    mounts
        .iter()
        .filter(|mount| mount.is_node_of(device) && mount.point != except)
        .cloned()
        .collect()
}
