//! Usage and health issues of volumes, with advice.

use std::path::PathBuf;
use std::time::Duration;

use crate::linux::Usage;
use crate::model::Bytes;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeStats {
    /// `None` if the device was removed.
    pub usage: Option<VolumeUsage>,
    /// Empty if no issue is detected.
    pub health_issues: Vec<HealthIssue>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeUsage {
    Filesystem(Usage),
    /// Only the capacity is known: a block volume, or a filesystem that does not respond.
    Device(Bytes),
}

/// A health issue of a volume on this node, with advice. A pod that is only deleted may start again on the same mount,
/// so pods must be stopped. `recovery` is how the filesystem becomes usable again after that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HealthIssue {
    #[error(
        "the device of the volume mounted at {} was removed: stop all pods that use the volume, and start them again, so \
         that the volume is attached again", path.display()
    )]
    DeviceGone { path: PathBuf },
    #[error(
        "the filesystem at {} has not responded for {} s: check the disk in the console and the kernel log; if it \
         persists, stop the instance, because the volume can only be released then", path.display(), since.as_secs()
    )]
    FilesystemHangs { path: PathBuf, since: Duration },
    #[error(
        "the filesystem on {device} has shut down after an error, and all I/O fails: check the kernel log, and stop \
         all pods that use the volume; {recovery}"
    )]
    FilesystemShutDown { device: String, recovery: String },
    #[error(
        "the kernel remounted the filesystem on {device} read-only after an error: check the kernel log, and stop \
         all pods that use the volume; {recovery}"
    )]
    RemountedReadOnly { device: String, recovery: String },
    #[error(
        "{device} is read-only, but its filesystem is mounted read-write: stop all pods that use the volume, and start \
         them again, so that the volume is staged again"
    )]
    DeviceReadOnly { device: String },
    #[error(
        "{device} has {size}, but its filesystem has {filesystem}: the data beyond the end of the device is lost; stop \
         the pod, and restore a snapshot or check the filesystem manually"
    )]
    DeviceTooSmall {
        device: String,
        size: Bytes,
        filesystem: Bytes,
    },
    #[error(
        "the filesystem on {device} has recorded errors ({errors}): check the kernel log, create a snapshot, and stop \
         all pods that use the volume; {recovery}"
    )]
    FilesystemErrors {
        device: String,
        errors: String,
        recovery: String,
    },
}

impl HealthIssue {
    /// The machine-readable reason in CamelCase.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::DeviceGone { .. } => "DeviceGone",
            Self::FilesystemHangs { .. } => "FilesystemHangs",
            Self::FilesystemShutDown { .. } => "FilesystemShutDown",
            Self::RemountedReadOnly { .. } => "RemountedReadOnly",
            Self::DeviceReadOnly { .. } => "DeviceReadOnly",
            Self::DeviceTooSmall { .. } => "DeviceTooSmall",
            Self::FilesystemErrors { .. } => "FilesystemErrors",
        }
    }

    pub fn is_fatal(&self) -> bool {
        match self {
            Self::DeviceGone { .. } | Self::FilesystemHangs { .. } | Self::FilesystemShutDown { .. } => true,
            Self::RemountedReadOnly { .. }
            | Self::DeviceReadOnly { .. }
            | Self::DeviceTooSmall { .. }
            | Self::FilesystemErrors { .. } => false,
        }
    }
}
