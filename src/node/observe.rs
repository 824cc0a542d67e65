//! Observations of the host, with shared errors and timeouts. Paths are restricted to kubelet's directory: its own path
//! may contain symlinks; below it none are followed.

use std::fmt::Display;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::path::{PathState, VolumePath};
use super::plan::PlanError;
use super::request::Volume;
use super::{Error, Result};
use crate::base::Deadline;
use crate::linux::{Device, Entry, Host, HostError, Mount};
use crate::model::{Bytes, DiskId, Failure};

/// Timeout of a call that only reads kernel memory or changes a directory entry.
const QUICK: Duration = Duration::from_secs(30);

/// Timeout of a call to which a filesystem must respond.
pub(super) const FILESYSTEM_TIMEOUT: Duration = Duration::from_secs(5);

/// The deadline of such a call. It is independent of the deadline of the RPC: an operation that has started continues
/// to a consistent state.
pub(super) fn quick() -> Deadline {
    Deadline::after(QUICK)
}

/// The host, the deadline of the RPC, and the volume and operation for error messages.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallContext<'a> {
    pub(super) host: &'a dyn Host,
    pub(super) volume: &'a Volume,
    pub(super) operation: &'static str,
    pub(super) deadline: Deadline,
}

impl<'a> CallContext<'a> {
    pub(super) fn new(host: &'a dyn Host, volume: &'a Volume, operation: &'static str, deadline: Deadline) -> Self {
        Self {
            host,
            volume,
            operation,
            deadline,
        }
    }

    pub(super) fn id(self) -> &'a DiskId {
        &self.volume.id
    }

    /// An error of the volume; the message begins with its ID.
    pub(super) fn error(self, failure: Failure, message: impl Display) -> Error {
        Error::new(failure, format!("volume {}: {message}", self.id()))
    }

    /// The state of the node forbids the operation.
    pub(super) fn refused(self) -> impl FnOnce(PlanError) -> Error {
        move |source| {
            let message = format!("{} is refused", self.operation);
            self.error(source.failure, message).with_source(source)
        }
    }

    pub(super) fn failed(self) -> impl FnOnce(HostError) -> Error {
        move |source| Error::Host {
            volume: self.id().clone(),
            operation: self.operation,
            source,
        }
    }

    /// The result of a call of the host, with this context in its error.
    pub(super) async fn wrap<T>(self, call: impl Future<Output = std::result::Result<T, HostError>>) -> Result<T> {
        call.await.map_err(self.failed())
    }

    /// Devices that may be the volume's have not reported their serials.
    pub(super) fn unidentified(self, devices: impl Display) -> Error {
        let message = format!(
            "{} is refused: {devices} may be this disk, but cannot be identified: the device has not reported its \
             complete serial",
            self.operation
        );
        self.error(Failure::DeviceUnidentified, message)
    }

    pub(super) fn not_found(self, path: &Path, reason: impl Display) -> Error {
        let message = format!("volume {} is not at {}: {reason}", self.id(), path.display());
        Error::new(Failure::NoSuchResource, message)
    }

    /// The device is not the one that was chosen, or has other content.
    pub(super) fn device_changed(self, device: &Device, reason: impl Into<String>) -> Error {
        let (device, reason) = (device.path.clone(), reason.into());
        self.failed()(HostError::DeviceChanged { device, reason })
    }

    pub(super) async fn mounts(self) -> Result<Vec<Mount>> {
        self.wrap(self.host.mounts(quick())).await
    }

    /// The size of a mounted filesystem; `None` if the device has no superblock of its type.
    pub(super) async fn mounted_size(self, device: &Device, mount: &Mount) -> Result<Option<Bytes>> {
        let vitals = self.wrap(self.host.vitals(quick(), device, mount)).await?;
        vitals.size.map_err(self.failed())
    }

    /// Whether an error made the kernel reject writes to the filesystem at a path. A filesystem that does not respond
    /// is not checked.
    pub(super) async fn rejects_writes(self, device: &Device, path_state: &PathState) -> bool {
        let mount = path_state.mount.as_ref();
        let Some(mount) = mount.filter(|mount| mount.is_of(device) && mount.kind.starts_with("ext")) else {
            return false;
        };
        let (deadline, part) = (Deadline::after(FILESYSTEM_TIMEOUT), mount.mounted_part(device));
        let vitals = self.host.vitals(deadline, &part, mount).await;
        vitals.is_ok_and(|vitals| vitals.rejects_writes)
    }
}

#[derive(Debug, Clone)]
pub(super) struct Observer {
    pub(super) host: Arc<dyn Host>,
    /// The root directory of kubelet (`--kubelet-dir`).
    pub(super) kubelet_dir: PathBuf,
    /// The device directory of the fake cloud.
    pub(super) device_dir: Option<PathBuf>,
}

impl Observer {
    pub(super) async fn observe(&self, path: &VolumePath, call: CallContext<'_>) -> Result<(Vec<Mount>, PathState)> {
        let mounts = call.mounts().await?;
        let state = self.path_state(path, &mounts, call).await?;
        Ok((mounts, state))
    }

    pub(super) async fn path_state(
        &self,
        path: &VolumePath,
        mounts: &[Mount],
        call: CallContext<'_>,
    ) -> Result<PathState> {
        let path = self.resolve_path(path, call).await?;
        let mount = mounts.iter().rfind(|mount| mount.point == path).cloned();
        let mut dead = false;
        let entry = match call.host.entry(quick(), &path).await {
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

    /// The path as in the mount table.
    pub(super) async fn resolve_path(&self, path: &VolumePath, call: CallContext<'_>) -> Result<PathBuf> {
        let given = &self.kubelet_dir;
        let real = call.wrap(call.host.real(quick(), given)).await?;
        below(path.as_path(), given, &real).ok_or_else(|| {
            let (field, directory) = (path.field(), given.display());
            let message = format!("{field} {path} is not below --kubelet-dir {directory}");
            call.error(Failure::PathNotAllowed, message)
        })
    }

    /// Resolves the path of an RPC that only reads or expands: a volume does not exist outside the directory.
    pub(super) async fn find_path(&self, path: &VolumePath, call: CallContext<'_>) -> Result<PathBuf> {
        match self.resolve_path(path, call).await {
            Err(error) if error.failure() == Failure::PathNotAllowed => {
                let directory = self.kubelet_dir.display();
                let reason = format!("volumes exist only below --kubelet-dir {directory}");
                Err(call.not_found(path.as_path(), reason))
            }
            resolved => resolved,
        }
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

/// The path below the real directory, if it is below the directory by its given or real path.
fn below(path: &Path, given: &Path, real: &Path) -> Option<PathBuf> {
    let rest = path.strip_prefix(given).or_else(|_| path.strip_prefix(real)).ok()?;
    (rest != Path::new("")).then(|| real.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_the_given_or_real_directory_resolves_to_the_real_one() {
        for (path, wanted) in [
            ("/var/lib/kubelet/pods/x", Some("/data/kubelet/pods/x")),
            ("/data/kubelet/pods/x", Some("/data/kubelet/pods/x")),
            ("/var/lib/kubelet", None),
            ("/data/kubelet", None),
            ("/var/lib/kubelet2/x", None),
            ("/var/lib", None),
            ("/etc/shadow", None),
        ] {
            let found = below(
                Path::new(path),
                Path::new("/var/lib/kubelet"),
                Path::new("/data/kubelet"),
            );
            assert_eq!(found.as_deref(), wanted.map(Path::new), "{path}");
        }
    }
}
