//! The steps of a plan.

use std::fmt;
use std::path::PathBuf;

use crate::base::Phase;
use crate::linux::MountRequest;
use crate::model::{Filesystem, Fsck, MountFlags, Tuning};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    MakeDirectory(PathBuf),
    /// Creates an empty file, the target of a bind mount of a device node.
    MakeFile(PathBuf),
    Bind {
        source: PathBuf,
        target: PathBuf,
    },
    /// Adds restrictive options, such as `ro` or `noexec`, to the mount at the target.
    Restrict {
        target: PathBuf,
        flags: MountFlags,
    },
    /// Sets or clears the read-only flag of the block device (`blockdev --setro`, `--setrw`).
    SetReadOnly(bool),
    /// Discards the content of a device on which a mkfs of this driver was interrupted.
    Wipe,
    RemoveFormatRecord,
    /// Runs mkfs on a device that is proven blank.
    Format {
        filesystem: Filesystem,
        tuning: Tuning,
    },
    /// Checks an unmounted filesystem with the fsck policy of the class.
    Check(Filesystem, Fsck),
    /// Checks an unmounted filesystem completely, then grows it to the size of the device.
    GrowUnmounted(Filesystem, Fsck),
    Mount(MountRequest),
    /// Grows the only partition of the disk, whose filesystem is mounted, to the end of the disk.
    GrowPartition,
    /// Grows a mounted filesystem. The path is that of a writable mount.
    GrowMounted(Filesystem, PathBuf),
    BindDevice(PathBuf),
}

impl Step {
    /// Whether the step only changes a path or a mount at a path. Before any other step, the device is verified to be
    /// the one that was chosen.
    pub(in crate::node) fn is_of_path(&self) -> bool {
        matches!(
            self,
            Self::MakeDirectory(_) | Self::MakeFile(_) | Self::Bind { .. } | Self::Restrict { .. }
        )
    }

    /// The phase that the step is, if it can take long.
    pub(in crate::node) fn phase(&self) -> Option<Phase> {
        match self {
            Self::Wipe | Self::Format { .. } => Some(Phase::Mkfs),
            Self::Check(..) => Some(Phase::Fsck),
            Self::GrowUnmounted(..) | Self::GrowPartition | Self::GrowMounted(..) => Some(Phase::Grow),
            Self::Mount(_) | Self::BindDevice(_) => Some(Phase::Mount),
            Self::MakeDirectory(_) | Self::MakeFile(_) | Self::Bind { .. } => None,
            Self::Restrict { .. } | Self::SetReadOnly(_) | Self::RemoveFormatRecord => None,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MakeDirectory(path) => write!(f, "create the directory {}", path.display()),
            Self::MakeFile(path) => write!(f, "create the file {}", path.display()),
            Self::Bind { source, target } => {
                write!(f, "bind-mount {} at {}", source.display(), target.display())
            }
            Self::Restrict { target, flags } => {
                write!(f, "add the options {flags} to the mount at {}", target.display())
            }
            Self::SetReadOnly(true) => f.write_str("set the device read-only"),
            Self::SetReadOnly(false) => f.write_str("set the device writable"),
            Self::Wipe => f.write_str("wipe the device, on which a mkfs was interrupted"),
            Self::RemoveFormatRecord => f.write_str("remove the format record"),
            Self::Format { filesystem, .. } => {
                write!(f, "create a filesystem of type {filesystem} on the blank device")
            }
            Self::Check(filesystem, fsck) => write!(f, "check the filesystem of type {filesystem} (fsck: {fsck})"),
            Self::GrowUnmounted(filesystem, fsck) => {
                write!(f, "grow the unmounted filesystem of type {filesystem} (fsck: {fsck})")
            }
            Self::Mount(request) => write!(f, "mount the device {request}"),
            Self::GrowPartition => f.write_str("grow the partition to the end of the disk"),
            Self::GrowMounted(filesystem, at) => {
                write!(
                    f,
                    "grow the filesystem of type {filesystem} mounted at {}",
                    at.display()
                )
            }
            Self::BindDevice(target) => write!(f, "bind-mount the device node at {}", target.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_describes_the_step() {
        let mount = |flags: &[&str]| {
            Step::Mount(MountRequest {
                target: "/staging".into(),
                filesystem: Filesystem::Xfs,
                flags: MountFlags::new(flags.iter().map(|&flag| flag.to_owned())).unwrap(),
                read_only: false,
            })
        };
        let format = Step::Format {
            filesystem: Filesystem::Ext4,
            tuning: Tuning::default(),
        };
        for (step, text) in [
            (format, "create a filesystem of type ext4 on the blank device"),
            (mount(&[]), "mount the device as xfs, writable, at /staging"),
            (
                mount(&["noatime"]),
                "mount the device as xfs, writable, at /staging with options noatime",
            ),
            (
                Step::Check(Filesystem::Ext3, Fsck::Preen),
                "check the filesystem of type ext3 (fsck: preen)",
            ),
        ] {
            assert_eq!(step.to_string(), text);
        }
    }
}
