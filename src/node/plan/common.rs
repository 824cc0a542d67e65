//! Checks and errors that several plans share.

use std::path::Path;

use super::{PathState, Plan, PlanError, Step};
use crate::linux::filesystem::GROW_TOLERANCE;
use crate::linux::{Device, Entry, Mount};
use crate::model::{Bytes, Failure, Filesystem};

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
    let partition = partition_grows.then_some(Step::GrowPartition);
    partition
        .into_iter()
        .chain([Step::GrowMounted(filesystem, mount_point.to_owned())])
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
    if mount.kind != filesystem.as_str() {
        let found = format!("as {}", mount.kind);
        return Err(PlanError::incompatible(staging, found, filesystem.as_str()));
    }
    let path = staging.path.display();
    if staging.is_shut_down() {
        let message = format!(
            "the filesystem at {path} has shut down after an error, and all I/O fails; it must be unstaged before it \
             can be used again"
        );
        return Err(PlanError::new(Failure::FilesystemShutDown, message));
    }
    if (mount.was_remounted_read_only() || rejects_writes) && !read_only {
        let message = format!(
            "the kernel remounted the filesystem at {path} read-only after an error; it must be unstaged before it can \
             be used again"
        );
        return Err(PlanError::new(Failure::RemountedReadOnly, message));
    }
    Ok(())
}

pub(super) fn ensure_directory(path_state: &PathState) -> Plan {
    match path_state.entry {
        Entry::Directory => Ok(Vec::new()),
        Entry::Missing => Ok(vec![Step::MakeDirectory(path_state.path.clone())]),
        other => Err(PlanError::wrong_path_type(&path_state.path, other, "a directory")),
    }
}

/// The disk contains data that the driver did not write.
pub(super) fn foreign_data(device: &Device, found: &str, requested: Filesystem) -> PlanError {
    let message = format!("{device} is neither blank nor formatted with {requested}: it contains {found}");
    PlanError::new(Failure::ForeignData, message)
}

pub(super) fn access_name(read_only: bool) -> &'static str {
    if read_only { "read-only" } else { "writable" }
}
