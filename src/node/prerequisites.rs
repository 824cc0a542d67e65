//! Prerequisites of the node plugin: mounts propagate to kubelet, and the state directory is writable.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::observe::quick;
use crate::base::error_chain;
use crate::host::{Entry, Host, Mount, Records};

/// The directories below kubelet's root directory that contain staging and target paths.
const VOLUME_DIRECTORIES: [&str; 2] = ["plugins", "pods"];

/// Checks what the node plugin needs from its host.
#[derive(Debug, Clone)]
pub struct Prerequisites {
    pub(super) host: Arc<dyn Host>,
    pub(super) records: Records,
    /// The root directory of kubelet (`--kubelet-dir`).
    pub(super) kubelet_dir: PathBuf,
}

impl Prerequisites {
    /// Checks that mounts below kubelet's root directory propagate to kubelet. Without propagation, a pod would write to
    /// the directory underneath the mount.
    ///
    /// # Errors
    /// Describes the problem and its solution.
    pub async fn check_mount_propagation(&self) -> Result<(), String> {
        let given = &self.kubelet_dir;
        let failed = |error| error_chain(&error);
        let real = self.host.real(quick(), given).await.map_err(failed)?;
        let entry = self.host.entry(quick(), &real).await.map_err(failed)?;
        if entry != Entry::Directory {
            return Err(format!(
                "--kubelet-dir {} is not a directory: set it to kubelet's --root-dir, and mount that directory into the \
                 container at the same path",
                given.display()
            ));
        }
        let mounts = self.host.mounts(quick()).await.map_err(failed)?;
        for directory in VOLUME_DIRECTORIES.map(|place| real.join(place)) {
            let point = containing_mount(&mounts, &directory).filter(|mount| !mount.is_shared);
            if let Some(mount) = point {
                return Err(format!(
                    "mounts below {} would not propagate to kubelet: the mount {} is not shared; mount it into the container \
                     with mountPropagation: Bidirectional, or, outside a container, run `mount --make-rshared {}`",
                    directory.display(),
                    mount.point.display(),
                    mount.point.display()
                ));
            }
        }
        Ok(())
    }

    /// Checks that the state directory is writable.
    ///
    /// # Errors
    /// Describes the problem.
    pub async fn check_state_dir(&self) -> Result<(), String> {
        let tested = self.records.try_out(quick()).await;
        tested.map_err(|error| format!("--state-dir: {}", error_chain(&error)))
    }
}

/// The mount that contains a path: among the longest mount points above it, the last mount.
fn containing_mount<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    above.max_by_key(|mount| mount.point.components().count())
}

#[cfg(test)]
mod tests {
    use crate::host::fake::{State, disk, mount_of};
    use crate::host::{Entry, Mount};
    use crate::node::tests::world_below;

    fn at(point: &str, is_shared: bool) -> Mount {
        Mount {
            is_shared,
            ..mount_of(&disk("vda", 0, "system"), point, "rw")
        }
    }

    async fn check(mounts: &[(&str, bool)]) -> Result<(), String> {
        let mounts = mounts
            .iter()
            .map(|(point, is_shared)| at(point, *is_shared));
        let state = State {
            mounts: mounts.collect(),
            entries: [("/k".into(), Entry::Directory)].into(),
            ..State::default()
        };
        let (_, node) = world_below("/k", state);
        node.prerequisites.check_mount_propagation().await
    }

    #[tokio::test]
    async fn the_topmost_mounts_of_both_directories_must_be_shared() {
        for mounts in [
            [("/", true)].as_slice(),
            // The mounts of the Helm chart.
            &[("/", false), ("/k/plugins", true), ("/k/pods", true)],
            &[("/", false), ("/k", true)],
            // Of two mounts at one path, the later is on top.
            &[("/", false), ("/k", false), ("/k", true)],
            // A mounted volume does not contain the directory.
            &[
                ("/", true),
                ("/k/pods/uid/volumes/x/mount", false),
                ("/kk", false),
            ],
        ] {
            assert_eq!(check(mounts).await, Ok(()), "{mounts:?}");
        }
        for (mounts, problem) in [
            (
                [("/", false)].as_slice(),
                "/k/plugins would not propagate to kubelet: the mount / is",
            ),
            (
                &[("/", true), ("/k/pods", false)],
                "/k/pods would not propagate to kubelet: the mount /k/pods is",
            ),
            (
                &[("/k", true), ("/k", false)],
                "/k/plugins would not propagate to kubelet: the mount /k is",
            ),
        ] {
            let error = check(mounts).await.unwrap_err();
            assert!(
                error.contains(problem) && error.contains("Bidirectional"),
                "{error}"
            );
        }
    }

    #[tokio::test]
    async fn a_missing_kubelet_directory_is_reported_with_its_flag() {
        let (_, node) = world_below("/k", State::default());
        let error = node
            .prerequisites
            .check_mount_propagation()
            .await
            .unwrap_err();
        assert!(
            error.starts_with("--kubelet-dir /k is not a directory"),
            "{error}"
        );
    }
}
