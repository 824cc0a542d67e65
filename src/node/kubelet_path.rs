//! Restricts paths to kubelet's directory. The directory's own path may contain symlinks; below it none are followed.

use std::path::{Path, PathBuf};

use super::observe::{CallContext, Observer, quick};
use super::path::VolumePath;
use super::{Error, Result};

impl Observer {
    /// The path as in the mount table.
    pub(super) async fn resolve_path(
        &self,
        path: &VolumePath,
        call: CallContext<'_>,
    ) -> Result<PathBuf> {
        let given = &self.kubelet_dir;
        let real = self
            .host
            .real(quick(), given)
            .await
            .map_err(call.failed())?;
        below(path.as_path(), given, &real).ok_or_else(|| Error::PathNotAllowed {
            volume: call.id().clone(),
            field: path.field(),
            path: path.as_path().to_owned(),
            directory: given.clone(),
        })
    }
}

/// Converts the error for RPCs that only read: a volume does not exist outside the directory.
pub(super) fn as_not_found(error: Error) -> Error {
    match error {
        Error::PathNotAllowed {
            volume,
            path,
            directory,
            ..
        } => Error::VolumeNotFound {
            volume,
            path,
            reason: format!(
                "volumes exist only below --kubelet-dir {}",
                directory.display()
            ),
        },
        other => other,
    }
}

/// The path below the real directory, if it is below the directory by its given or real path.
fn below(path: &Path, given: &Path, real: &Path) -> Option<PathBuf> {
    let rest = path
        .strip_prefix(given)
        .or_else(|_| path.strip_prefix(real))
        .ok()?;
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
