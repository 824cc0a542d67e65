//! Checks and errors that several plans share.

use super::{PathState, Plan, PlanError, Step};
use crate::host::filesystem::GROW_TOLERANCE;
use crate::host::{Device, Entry, Mount};
use crate::model::{Bytes, Filesystem};

/// Whether the filesystem leaves more than [`GROW_TOLERANCE`] of the device unused.
pub(super) fn needs_growth(filesystem_size: Option<Bytes>, device: &Device) -> bool {
    filesystem_size.is_some_and(|size| device.size.0.saturating_sub(size.0) > GROW_TOLERANCE.0)
}

/// Creates the directory of a mount point if it is missing.
pub(super) fn ensure_directory(path_state: &PathState) -> Plan {
    match path_state.entry {
        Entry::Directory => Ok(Vec::new()),
        Entry::Missing => Ok(vec![Step::MakeDirectory(path_state.path.clone())]),
        other => Err(wrong_path_type(path_state, other, "a directory")),
    }
}

pub(super) fn wrong_path_type(
    path_state: &PathState,
    entry: Entry,
    expected: &'static str,
) -> PlanError {
    PlanError::WrongPathType {
        path: path_state.path.clone(),
        found: match entry {
            Entry::Missing => "missing",
            Entry::Directory => "a directory",
            Entry::File => "a file",
            Entry::BlockDevice(_) => "a block device",
            Entry::Symlink => "a symlink",
            Entry::Other => "a special file",
        },
        expected,
    }
}

pub(super) fn incompatible(path_state: &PathState, found: String, requested: &str) -> PlanError {
    PlanError::Incompatible {
        path: path_state.path.clone(),
        found,
        requested: requested.to_owned(),
    }
}

pub(super) fn path_in_use(path_state: &PathState, mount: &Mount) -> PlanError {
    PlanError::PathInUse {
        path: path_state.path.clone(),
        mounted: format!("{} ({})", mount.source.display(), mount.kind),
    }
}

pub(super) fn path_in_use_by(path_state: &PathState, mount: &Mount, device: &Device) -> PlanError {
    PlanError::PathInUse {
        path: path_state.path.clone(),
        mounted: format!(
            "{} ({}) of {device} with {}",
            mount.source.display(),
            mount.kind,
            device.identity()
        ),
    }
}

pub(super) fn foreign_data(device: &Device, found: &str, requested: Filesystem) -> PlanError {
    PlanError::ForeignData {
        device: device.to_string(),
        found: found.to_owned(),
        requested,
    }
}

pub(super) fn mount_points(mounts: &[Mount]) -> String {
    let points: Vec<String> = mounts
        .iter()
        .map(|m| m.point.display().to_string())
        .collect();
    points.join(", ")
}

pub(super) fn access_name(read_only: bool) -> &'static str {
    if read_only { "read-only" } else { "writable" }
}
