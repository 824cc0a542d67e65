//! Looking at the host, with the errors and time bounds that all verbs share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::path::VolumePath;
use super::plan;
use super::request::Volume;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Device, Entry, Flushed, HostError, Mount};
use crate::model::DiskId;

/// Bound of one call that only reads what the kernel has in memory, or changes a directory entry.
const QUICK: Duration = Duration::from_secs(30);

/// The deadline of such a call. It is not the caller's: once a verb has begun to act, it goes on to
/// a state that the next call can build on.
pub(super) fn quick() -> Deadline {
    Deadline::after(QUICK)
}

/// Names the volume and the verb in errors of the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallContext<'a> {
    volume: &'a DiskId,
    verb: &'static str,
}

impl<'a> CallContext<'a> {
    pub(super) fn new(volume: &'a Volume, verb: &'static str) -> Self {
        Self {
            volume: &volume.id,
            verb,
        }
    }

    pub(super) fn volume(self) -> &'a DiskId {
        self.volume
    }

    pub(super) fn failed(self) -> impl FnOnce(HostError) -> Error {
        let volume = self.volume.clone();
        let verb = self.verb;
        move |source| Error::Host {
            volume,
            verb,
            source,
        }
    }
}

/// A path, what is there, and what is mounted there.
#[derive(Debug, Clone)]
pub(super) struct PathState {
    /// The path as the mount table spells it.
    pub(super) path: PathBuf,
    /// What is there. Under a mount that answers no more it counts as missing.
    pub(super) entry: Entry,
    /// The topmost mount at it.
    pub(super) mount: Option<Mount>,
    /// Whether that answers with `EIO`, not even telling what is there.
    pub(super) dead: bool,
}

impl Node {
    /// Looks at a path, given the mount table.
    pub(super) async fn path_state(
        &self,
        path: &VolumePath,
        mounts: &[Mount],
        at: CallContext<'_>,
    ) -> Result<PathState> {
        let path = self.place(path, at).await?;
        let mount = mounts.iter().rfind(|mount| mount.point == path).cloned();
        let mut dead = false;
        let entry = match self.host.entry(quick(), &path).await {
            Ok(entry) => entry,
            Err(error @ HostError::Symlink { .. }) => return Err(at.failed()(error)),
            // A filesystem whose device is gone answers nothing, and must come off all the same.
            Err(error) if mount.is_some() => {
                tracing::warn!(path = %path.display(), error = %error, "a mounted path does not answer");
                dead = error.is_unreadable();
                Entry::Missing
            }
            Err(error) => return Err(at.failed()(error)),
        };
        Ok(PathState {
            path,
            entry,
            mount,
            dead,
        })
    }

    /// All devices, where they tell whose the mount at a path is, and whether the one that seems to be
    /// behind it is in use; none where the volume's own tells.
    pub(super) async fn bystanders(
        &self,
        device: Option<&Device>,
        path_state: &PathState,
        at: CallContext<'_>,
    ) -> Result<(Vec<Device>, bool)> {
        let Some(mount) = &path_state.mount else {
            return Ok((Vec::new(), true));
        };
        if device.is_some_and(|device| plan::is_of(device, path_state, mount)) {
            return Ok((Vec::new(), true));
        }
        let devices = self.host.devices(quick()).await.map_err(at.failed())?;
        // A bound node does not use its device, and a device that cannot tell may be in use.
        let claimed = match (plan::behind(&devices, path_state, mount), path_state.entry) {
            (None, _) | (Some(_), Entry::Block(_)) => true,
            (Some(behind), _) => {
                let flushed = self.host.flush_if_free(quick(), behind).await;
                !matches!(flushed, Ok(Flushed::Free))
            }
        };
        Ok((devices, claimed))
    }

    /// The mount table.
    pub(super) async fn mounts(&self, at: CallContext<'_>) -> Result<Vec<Mount>> {
        self.host.mounts(quick()).await.map_err(at.failed())
    }
}

/// Mounts of the device's filesystem, other than at these places.
pub(super) fn mounts_of(device: &Device, mounts: &[Mount], except: &[&Path]) -> Vec<Mount> {
    mounts
        .iter()
        .filter(|mount| mount.is_of(device) && !except.contains(&mount.point.as_path()))
        .cloned()
        .collect()
}

/// Mounts of the device's node, other than at this place.
pub(super) fn nodes_of(device: &Device, mounts: &[Mount], except: &Path) -> Vec<Mount> {
    mounts
        .iter()
        .filter(|mount| mount.is_node_of(device) && mount.point != except)
        .cloned()
        .collect()
}
