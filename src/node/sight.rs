//! Whether what the node needs of its surroundings is there: kubelet sees what it mounts, and its records can be kept.

use std::path::Path;

use super::Node;
use super::observe::quick;
use crate::base::chain::chain;
use crate::host::{Entry, Mount};

/// Where kubelet has volumes staged, and where pods find them.
const PLACES: [&str; 2] = ["plugins", "pods"];

impl Node {
    /// That kubelet sees what is mounted below its directory.
    ///
    /// # Errors
    /// What is wrong, and what to do, in words: a volume would be mounted, kubelet would be told so, and the pod would write to
    /// the directory below the mount.
    pub async fn in_sight(&self) -> Result<(), String> {
        let given = &self.settings.kubelet_dir;
        let failed = |error| chain(&error);
        let real = self.host.real(quick(), given).await.map_err(failed)?;
        let entry = self.host.entry(quick(), &real).await.map_err(failed)?;
        if entry != Entry::Directory {
            return Err(format!(
                "--kubelet-dir {} is no directory here: set it to kubelet's --root-dir, and mount that into the container at the \
                 same path",
                given.display()
            ));
        }
        let mounts = self.host.mounts(quick()).await.map_err(failed)?;
        for place in PLACES.map(|place| real.join(place)) {
            let point = covering(&mounts, &place).filter(|mount| !mount.is_shared);
            if let Some(mount) = point {
                return Err(format!(
                    "kubelet would not see what is mounted below {}: the mount {} is not shared; mount it into the container \
                     with mountPropagation: Bidirectional, or, outside of one, run `mount --make-rshared {}`",
                    place.display(),
                    mount.point.display(),
                    mount.point.display()
                ));
            }
        }
        Ok(())
    }

    /// That records can be written.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub async fn keeps_records(&self) -> Result<(), String> {
        let tried = self.records.try_out(quick()).await;
        tried.map_err(|error| format!("--state-dir: {}", chain(&error)))
    }
}

/// The mount that a path is on: the last of those with the longest point above it.
fn covering<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
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

    async fn seen(mounts: &[(&str, bool)]) -> Result<(), String> {
        let mounts = mounts
            .iter()
            .map(|(point, is_shared)| at(point, *is_shared));
        let state = State {
            mounts: mounts.collect(),
            entries: [("/k".into(), Entry::Directory)].into(),
            ..State::default()
        };
        let (_, node) = world_below("/k", state);
        node.in_sight().await
    }

    #[tokio::test]
    async fn what_counts_is_the_topmost_mount_of_both_places() {
        for mounts in [
            [("/", true)].as_slice(),
            // As the chart mounts them into its container.
            &[("/", false), ("/k/plugins", true), ("/k/pods", true)],
            &[("/", false), ("/k", true)],
            // Of two at one place the later one is on top.
            &[("/", false), ("/k", false), ("/k", true)],
            // A volume that is mounted there says nothing of the place.
            &[
                ("/", true),
                ("/k/pods/uid/volumes/x/mount", false),
                ("/kk", false),
            ],
        ] {
            assert_eq!(seen(mounts).await, Ok(()), "{mounts:?}");
        }
        for (mounts, place) in [
            ([("/", false)].as_slice(), "/k/plugins: the mount / is"),
            (
                &[("/", true), ("/k/pods", false)],
                "/k/pods: the mount /k/pods is",
            ),
            (
                &[("/k", true), ("/k", false)],
                "/k/plugins: the mount /k is",
            ),
        ] {
            let told = seen(mounts).await.unwrap_err();
            assert!(
                told.contains(place) && told.contains("Bidirectional"),
                "{told}"
            );
        }
    }

    #[tokio::test]
    async fn a_directory_that_is_not_there_is_told_by_its_flag() {
        let (_, node) = world_below("/k", State::default());
        let told = node.in_sight().await.unwrap_err();
        assert!(
            told.starts_with("--kubelet-dir /k is no directory here"),
            "{told}"
        );
    }
}
