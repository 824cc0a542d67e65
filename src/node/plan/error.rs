//! Errors of planning.

use std::path::{Path, PathBuf};

use super::PathState;
use crate::linux::{Device, Entry, Mount};
use crate::model::Filesystem;

/// The state of the host forbids the operation. No step was executed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("{device} has {found}, but {requested} was requested")]
    FilesystemMismatch {
        device: String,
        found: Filesystem,
        requested: Filesystem,
    },
    /// The disk contains data that the driver did not write.
    #[error("{device} is neither blank nor formatted with {requested}: it contains {found}")]
    ForeignData {
        device: String,
        found: String,
        requested: Filesystem,
    },
    /// A mkfs was interrupted, and the content may not be its remains.
    #[error(
        "{device} contains {found}: {why}; if the content is not needed, wipe the disk manually \
         (wipefs -a, then blkdiscard -z)"
    )]
    FormatInterrupted {
        device: String,
        found: String,
        /// The interrupted mkfs, and the reason why it is not repeated.
        why: String,
    },
    /// The device has holders (device mapper, RAID).
    #[error("{device} is in use by {holders}")]
    DeviceInUse { device: String, holders: String },
    #[error(
        "{device} has the partitions {partitions}, but the volume is the whole disk; to mount the only partition of a disk \
         that the driver did not format, recreate the PersistentVolume with the volume attribute `partition: \"1\"`"
    )]
    Partitioned { device: String, partitions: String },
    #[error(
        "{device} has {found}, but the volume attribute `partition: \"1\"` requires a single partition with a filesystem"
    )]
    NotSinglePartition { device: String, found: String },
    #[error("{device} is blank, and read-only use never formats a disk")]
    BlankReadOnly { device: String },
    /// The volume is mounted at another path.
    #[error("{device} is mounted at {paths}")]
    MountedElsewhere { device: String, paths: String },
    #[error("{mounted} is mounted at {}, not this volume", path.display())]
    PathInUse {
        path: PathBuf,
        /// The source, type and device of the mount.
        mounted: String,
    },
    #[error("{} is {found}, not {expected}", path.display())]
    WrongPathType {
        path: PathBuf,
        found: &'static str,
        expected: &'static str,
    },
    /// The volume is already at the path with other properties (`ALREADY_EXISTS` of the CSI specification).
    #[error("the volume is already at {} {found}, but {requested} was requested", path.display())]
    Incompatible {
        path: PathBuf,
        /// The property of the existing mount.
        found: String,
        requested: String,
    },
    #[error("the volume is not staged at {}", staging.display())]
    NotStaged { staging: PathBuf },
    /// A writable target requires a writable staging mount.
    #[error("the volume is staged read-only at {}", staging.display())]
    StagedReadOnly { staging: PathBuf },
    #[error(
        "the kernel remounted the filesystem at {} read-only after an error; it must be unstaged before it can be \
         used again", staging.display()
    )]
    RemountedReadOnly { staging: PathBuf },
    /// The filesystem has shut down, or all I/O of its device fails.
    #[error(
        "the filesystem at {} has shut down after an error, and all I/O fails; it must be unstaged before it can be \
         used again", staging.display()
    )]
    FilesystemShutDown { staging: PathBuf },
    #[error("the access mode allows one target path, and the volume is already published at {paths}")]
    AlreadyPublished { paths: String },
    /// The read-only flag of a block device applies to all its target paths.
    #[error("the device is published {found} at {path}, and all target paths of a device share its access")]
    MixedAccess { found: &'static str, path: String },
    /// A filesystem grows only through a writable mount.
    #[error("{device} is mounted read-only: its filesystem cannot grow")]
    GrowReadOnly { device: String },
}

impl PlanError {
    pub(in crate::node) fn wrong_path_type(path: &Path, entry: Entry, expected: &'static str) -> Self {
        Self::WrongPathType {
            path: path.to_owned(),
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

    pub(in crate::node) fn path_in_use(path_state: &PathState, mount: &Mount) -> Self {
        Self::PathInUse {
            path: path_state.path.clone(),
            mounted: format!("{} ({})", mount.source.display(), mount.kind),
        }
    }

    pub(in crate::node) fn path_in_use_by(path_state: &PathState, mount: &Mount, device: &Device) -> Self {
        Self::PathInUse {
            path: path_state.path.clone(),
            mounted: format!(
                "{} ({}) of {device} with {}",
                mount.source.display(),
                mount.kind,
                device.identity()
            ),
        }
    }

    pub(in crate::node) fn mounted_elsewhere(device: &Device, mounts: &[Mount]) -> Self {
        Self::MountedElsewhere {
            device: device.to_string(),
            paths: mount_points(mounts),
        }
    }
}

pub(super) fn mount_points(mounts: &[Mount]) -> String {
    let points: Vec<String> = mounts.iter().map(|m| m.point.display().to_string()).collect();
    points.join(", ")
}
