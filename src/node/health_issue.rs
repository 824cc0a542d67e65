//! Health issues of volumes, with advice.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::model::Bytes;

/// A health issue of a volume on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HealthIssue {
    /// The volume is mounted, but its device was removed: all I/O fails.
    DeviceGone { path: PathBuf },
    /// The filesystem does not respond, because its device does not.
    FilesystemHangs { path: PathBuf, since: Duration },
    /// The filesystem has shut down, or all I/O of its device fails.
    FilesystemShutDown { device: String, recovery: Recovery },
    /// The kernel remounted the filesystem read-only after an error.
    RemountedReadOnly { device: String, recovery: Recovery },
    /// The device is read-only, but its filesystem is mounted read-write.
    DeviceReadOnly { device: String },
    /// The device is smaller than its filesystem.
    DeviceTooSmall {
        device: String,
        size: Bytes,
        filesystem: Bytes,
    },
    /// The filesystem has recorded errors and remains in use.
    FilesystemErrors {
        device: String,
        /// The errors as recorded by the kernel.
        errors: String,
        recovery: Recovery,
    },
}

/// How a filesystem becomes usable again, by its type and the `fsck` attribute of the volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// Staging repairs it (`fsck: preen`).
    Preen,
    /// Staging is rejected until it is repaired manually (`fsck: journal`).
    ManualRepair { command: String },
    /// Staging mounts it unchecked (`fsck: none`, btrfs).
    ManualCheck { command: String },
    /// Mounting it replays its journal, and verifies its metadata as they are read (xfs).
    Mount,
}

impl HealthIssue {
    /// The machine-readable reason in CamelCase.
    #[must_use]
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

    /// Whether the volume is unusable.
    #[must_use]
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

/// The issue with advice. A pod that is only deleted may start again on the same mount, so pods must be stopped.
impl fmt::Display for HealthIssue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeviceGone { path } => write!(
                f,
                "the device of the volume mounted at {} was removed: stop all pods that use the volume, and start \
                 them again, so that the volume is attached again",
                path.display()
            ),
            Self::FilesystemHangs { path, since } => write!(
                f,
                "the filesystem at {} has not responded for {} s: check the disk in the console and the \
                 kernel log; if it persists, stop the instance, because the volume can only be released then",
                path.display(),
                since.as_secs()
            ),
            Self::FilesystemShutDown { device, recovery } => write!(
                f,
                "the filesystem on {device} has shut down after an error, and all I/O fails: check the kernel log, and \
                 {recovery}"
            ),
            Self::RemountedReadOnly { device, recovery } => write!(
                f,
                "the kernel remounted the filesystem on {device} read-only after an error: check the kernel log, and \
                 {recovery}"
            ),
            Self::DeviceReadOnly { device } => write!(
                f,
                "{device} is read-only, but its filesystem is mounted read-write: stop all pods that use the volume, \
                 and start them again, so that the volume is staged again"
            ),
            Self::DeviceTooSmall {
                device,
                size,
                filesystem,
            } => write!(
                f,
                "{device} has {size}, but its filesystem has {filesystem}: the data beyond the end of the \
                 device is lost; stop the pod, and restore a snapshot or check the filesystem manually"
            ),
            Self::FilesystemErrors {
                device,
                errors,
                recovery,
            } => write!(
                f,
                "the filesystem on {device} has recorded errors ({errors}): check the kernel log, create a snapshot, \
                 and {recovery}"
            ),
        }
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stop all pods that use the volume; ")?;
        match self {
            Self::Preen => f.write_str(
                "when they start again, `e2fsck -p` repairs the filesystem before it is mounted (fsck: preen)",
            ),
            Self::ManualRepair { command } => write!(
                f,
                "it can be staged again after `{command}` has repaired it manually (fsck: journal)"
            ),
            Self::ManualCheck { command } => write!(
                f,
                "run `{command}` manually before they start again, because it is mounted without a check"
            ),
            Self::Mount => f.write_str("when they start again, the mount replays the journal"),
        }
    }
}
