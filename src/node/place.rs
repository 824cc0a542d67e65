//! Paths only below kubelet's directory. Its own path may lead through symlinks, as an administrator set
//! it up; below it the host follows none.

use std::path::{Path, PathBuf};

use super::observe::{CallContext, quick};
use super::path::VolumePath;
use super::{Error, Node, Result};

impl Node {
    /// The path as the mount table spells it.
    pub(super) async fn place(&self, path: &VolumePath, at: CallContext<'_>) -> Result<PathBuf> {
        let given = &self.settings.kubelet_dir;
        let real = self.host.real(quick(), given).await.map_err(at.failed())?;
        below(path.as_path(), given, &real).ok_or_else(|| Error::Outside {
            volume: at.volume().clone(),
            field: path.field(),
            path: path.as_path().to_owned(),
            directory: given.clone(),
        })
    }
}

/// The error where a path only tells where a volume should be: outside the directory there is none.
pub(super) fn not_there(error: Error) -> Error {
    match error {
        Error::Outside {
            volume,
            path,
            directory,
            ..
        } => Error::NotHere {
            volume,
            path,
            reason: format!(
                "volumes are only below {}, which --kubelet-dir names",
                directory.display()
            ),
        },
        other => other,
    }
}

/// The path below the real directory, if it is below the directory by either of its names.
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
    fn what_is_below_the_directory_by_either_name_is_below_its_real_one() {
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
