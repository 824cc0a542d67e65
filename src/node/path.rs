//! Paths that the orchestrator names.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// Longest path that the kernel takes.
const LONGEST: usize = 4095;

/// An absolute path without `..`, and not the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumePath {
    path: PathBuf,
    field: &'static str,
}

/// A path that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("path {path:?} is refused: {reason}")]
pub struct InvalidPath {
    /// What was given.
    pub path: String,
    /// What is wrong.
    pub reason: &'static str,
}

impl VolumePath {
    /// The path.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.path
    }

    /// The field that it came in.
    #[must_use]
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// The path, as it came in this field.
    #[must_use]
    pub fn of(self, field: &'static str) -> Self {
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
            "it holds a NUL"
        } else if text.len() > LONGEST {
            "it is longer than 4095 bytes"
        } else if path.components().any(|part| part == Component::ParentDir) {
            "it holds \"..\""
        } else if path.file_name().is_none() {
            "it is the root"
        } else {
            // Without doubled and trailing slashes, as the mount table spells paths.
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
    fn only_absolute_paths_below_the_root_without_dots_are_taken() {
        for text in ["", "a/b", "/", "//", "/a/../b", "/a\0b", "/.."] {
            assert!(text.parse::<VolumePath>().is_err(), "{text:?}");
        }
        let path: VolumePath = "/var//lib/./kubelet/x/".parse().unwrap();
        assert_eq!(path.to_string(), "/var/lib/kubelet/x");
    }
}
