//! Validated volume paths of CSI requests.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

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
