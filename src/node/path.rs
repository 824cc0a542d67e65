//! Volume paths of CSI requests, and the directory entry and mount at a path.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use crate::linux::{Entry, Mount};

/// `PATH_MAX` without the terminating NUL.
const MAX_LENGTH: usize = 4095;

/// An absolute, normalized path without `..` components that is not the root directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumePath {
    path: PathBuf,
    field: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("path {path:?} is invalid: {reason}")]
pub struct InvalidPath {
    pub path: String,
    pub reason: &'static str,
}

impl VolumePath {
    pub fn as_path(&self) -> &Path {
        &self.path
    }

    /// The name of the request field, for error messages.
    pub fn field(&self) -> &'static str {
        self.field
    }

    pub fn with_field(self, field: &'static str) -> Self {
        Self { field, ..self }
    }
}

impl FromStr for VolumePath {
    type Err = InvalidPath;

    fn from_str(text: &str) -> Result<Self, InvalidPath> {
        let path = Path::new(text);
        let reason = if !path.is_absolute() {
            "it is not absolute"
        } else if text.contains('\0') {
            "it contains a NUL byte"
        } else if text.len() > MAX_LENGTH {
            "it is longer than 4095 bytes"
        } else if path.components().any(|part| part == Component::ParentDir) {
            "it contains \"..\""
        } else if path.file_name().is_none() {
            "it is the root directory"
        } else {
            // Removes repeated and trailing slashes, as in the mount table.
            return Ok(Self {
                path: path.components().collect(),
                field: "path",
            });
        };
        Err(InvalidPath {
            path: text.to_owned(),
            reason,
        })
    }
}

impl fmt::Display for VolumePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

#[derive(Debug, Clone)]
pub(super) struct PathState {
    /// The path as in the mount table.
    pub(super) path: PathBuf,
    /// The directory entry. Under a mount that does not respond, it is reported as missing.
    pub(super) entry: Entry,
    pub(super) mount: Option<Mount>,
    /// Whether reading the path fails with `EIO`.
    pub(super) dead: bool,
}

impl PathState {
    /// Whether the mounted filesystem has shut down, or all I/O of its device fails.
    pub(super) fn is_shut_down(&self) -> bool {
        self.dead || self.mount.as_ref().is_some_and(Mount::shows_shutdown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_root_and_parent_paths_are_rejected() {
        for text in ["", "a/b", "/", "//", "/a/../b", "/a\0b", "/.."] {
            assert!(text.parse::<VolumePath>().is_err(), "{text:?}");
        }
        let path: VolumePath = "/var//lib/./kubelet/x/".parse().unwrap();
        assert_eq!(path.to_string(), "/var/lib/kubelet/x");
    }
}
