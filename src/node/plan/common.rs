//! Checks and errors that several plans share.

use std::path::Path;

use super::{DeviceStep, PathState, PathStep, Plan, PlanError, Step};
use crate::linux::filesystem::GROW_TOLERANCE;
use crate::linux::{Device, Entry, Mount};
use crate::model::{Bytes, Filesystem};

/// Whether the filesystem leaves more than [`GROW_TOLERANCE`] of the device unused.
pub(super) fn needs_growth(filesystem_size: Option<Bytes>, device: &Device) -> bool {
    filesystem_size.is_some_and(|size| device.size.0.saturating_sub(size.0) > GROW_TOLERANCE.0)
}

/// Grows a mounted filesystem, and before it the partition that it is on.
pub(super) fn grow_mounted(
    filesystem: Filesystem,
    mount_point: &Path,
    partition_grows: bool,
) -> impl Iterator<Item = Step> {
    let partition = partition_grows.then_some(DeviceStep::GrowPartition);
    let grow = DeviceStep::GrowMounted {
        filesystem,
        mount_point: mount_point.to_owned(),
    };
    partition.into_iter().chain([grow]).map(Step::from)
}

/// Checks that the filesystem mounted at the staging path is of the requested type, and can be used as requested.
/// `rejects_writes` states whether it rejects writes after an error.
pub(super) fn check_usable(
    staging: &PathState,
    mount: &Mount,
    filesystem: Filesystem,
    read_only: bool,
    rejects_writes: bool,
) -> Result<(), PlanError> {
    let path = staging.path.clone();
    if mount.kind != filesystem.as_str() {
        let found = format!("as {}", mount.kind);
        return Err(incompatible(staging, found, filesystem.as_str()));
    }
    if staging.is_shut_down() {
        return Err(PlanError::FilesystemShutDown { staging: path });
    }
    if (mount.was_remounted_read_only() || rejects_writes) && !read_only {
        return Err(PlanError::RemountedReadOnly { staging: path });
    }
    Ok(())
}

/// Creates the directory of a mount point if it is missing.
pub(super) fn ensure_directory(path_state: &PathState) -> Plan {
    match path_state.entry {
        Entry::Directory => Ok(Vec::new()),
        Entry::Missing => Ok(vec![PathStep::MakeDirectory(path_state.path.clone()).into()]),
        other => Err(PlanError::wrong_path_type(&path_state.path, other, "a directory")),
    }
}

pub(super) fn incompatible(path_state: &PathState, found: String, requested: &str) -> PlanError {
    PlanError::Incompatible {
        path: path_state.path.clone(),
        found,
        requested: requested.to_owned(),
    }
}

pub(super) fn foreign_data(device: &Device, found: &str, requested: Filesystem) -> PlanError {
    PlanError::ForeignData {
        device: device.to_string(),
        found: found.to_owned(),
        requested,
    }
}

pub(super) fn access_name(read_only: bool) -> &'static str {
    if read_only { "read-only" } else { "writable" }
}
