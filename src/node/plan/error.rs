//! Errors of planning.

use std::fmt::Display;
use std::path::Path;

use super::PathState;
use crate::linux::{Device, Entry, Mount};
use crate::model::Failure;

/// The state of the host forbids the operation. No step was executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    pub failure: Failure,
    message: String,
}

impl PlanError {
    pub(crate) fn new(failure: Failure, message: String) -> Self {
        Self { failure, message }
    }

    pub(in crate::node) fn wrong_path_type(path: &Path, entry: Entry, expected: &str) -> Self {
        let found = match entry {
            Entry::Missing => "missing",
            Entry::Directory => "a directory",
            Entry::File => "a file",
            Entry::BlockDevice(_) => "a block device",
            Entry::Symlink => "a symlink",
            Entry::Other => "a special file",
        };
        let message = format!("{} is {found}, not {expected}", path.display());
        Self::new(Failure::TargetConflict, message)
    }

    /// `owner` is the other disk that the mount is of, if it is known.
    pub(in crate::node) fn path_in_use(path_state: &PathState, mount: &Mount, owner: Option<&Device>) -> Self {
        let owner = owner.map(|device| format!(" of {device} with {}", device.identity()));
        let owner = owner.unwrap_or_default();
        let (source, kind, path) = (mount.source.display(), &mount.kind, path_state.path.display());
        let message = format!("{source} ({kind}){owner} is mounted at {path}, not this volume");
        Self::new(Failure::TargetConflict, message)
    }

    pub(in crate::node) fn mounted_elsewhere(device: &Device, mounts: &[Mount]) -> Self {
        let message = format!("{device} is mounted at {}", mount_points(mounts));
        Self::new(Failure::DeviceInUse, message)
    }

    /// The volume is already at the path with other properties (`ALREADY_EXISTS` of the CSI specification).
    pub(super) fn incompatible(path_state: &PathState, found: impl Display, requested: &str) -> Self {
        let path = path_state.path.display();
        let message = format!("the volume is already at {path} {found}, but {requested} was requested");
        Self::new(Failure::StagingConflict, message)
    }
}

pub(super) fn mount_points(mounts: &[Mount]) -> String {
    let points: Vec<String> = mounts.iter().map(|m| m.point.display().to_string()).collect();
    points.join(", ")
}
