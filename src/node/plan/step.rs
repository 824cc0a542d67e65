//! The steps that plans are made of.

use std::fmt;
use std::path::PathBuf;

use crate::model::{Filesystem, Fsck, MountFlags, Tuning};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Let the kernel write to the device, or not.
    SetDeviceReadOnly(bool),
    /// Make a device blank again on which our own mkfs was cut off.
    Wipe,
    /// Forget that a mkfs was begun.
    ForgetFormat,
    /// Make a filesystem on a device that is proven blank.
    Format {
        /// Its type.
        filesystem: Filesystem,
        /// How.
        tuning: Tuning,
    },
    /// Look whether an unmounted filesystem is in order, as far as the policy goes.
    Check(Filesystem, Fsck),
    /// Grow an unmounted filesystem that a full check finds in order.
    GrowUnmounted(Filesystem, Fsck),
    /// Make a directory to mount on.
    MakeDirectory(PathBuf),
    /// Make a file to bind a device onto.
    MakeFile(PathBuf),
    /// Mount the device.
    Mount {
        /// Where.
        target: PathBuf,
        /// Its filesystem.
        filesystem: Filesystem,
        /// Options.
        flags: MountFlags,
        /// Whether read-only.
        read_only: bool,
    },
    /// Grow a mounted filesystem.
    GrowMounted {
        /// Its type.
        filesystem: Filesystem,
        /// Where it is mounted writable.
        at: PathBuf,
    },
    /// Show a directory at another place.
    Bind {
        /// The directory.
        source: PathBuf,
        /// The other place.
        target: PathBuf,
    },
    /// Show the device's node at a place.
    BindDevice(PathBuf),
    /// Make the mount at a place read-only.
    RemountReadOnly(PathBuf),
    /// Add options to the mount at a place.
    Restrict {
        /// The place.
        target: PathBuf,
        /// The options.
        flags: MountFlags,
    },
    /// Remove the mount at a place.
    Unmount(PathBuf),
    /// Remove the mount at a place, of which nothing can be written any more.
    Detach(PathBuf),
    /// Write what the kernel holds for the device.
    Flush,
    /// Wait until the kernel has written all and uses the device no more.
    Release,
    /// Remove an empty directory or file.
    Remove(PathBuf),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SetDeviceReadOnly(true) => f.write_str("let nobody write to the device"),
            Self::SetDeviceReadOnly(false) => f.write_str("let the device be written to"),
            Self::Wipe => f.write_str("make the device blank, on which a mkfs was cut off"),
            Self::ForgetFormat => f.write_str("forget that a mkfs was begun"),
            Self::Format { filesystem, .. } => {
                write!(
                    f,
                    "make a filesystem of type {filesystem} on the blank device"
                )
            }
            Self::Check(filesystem, fsck) => {
                write!(
                    f,
                    "check the filesystem of type {filesystem} (fsck: {fsck})"
                )
            }
            Self::GrowUnmounted(filesystem, fsck) => write!(
                f,
                "grow the unmounted filesystem of type {filesystem} (fsck: {fsck})"
            ),
            Self::MakeDirectory(path) => write!(f, "make the directory {}", path.display()),
            Self::MakeFile(path) => write!(f, "make the file {}", path.display()),
            Self::Mount {
                target,
                filesystem,
                flags,
                read_only,
            } => {
                let access = if *read_only { "read-only" } else { "writable" };
                let target = target.display();
                write!(f, "mount the device as {filesystem}, {access}, at {target}")?;
                if flags.is_empty() {
                    return Ok(());
                }
                write!(f, " with options {flags}")
            }
            Self::GrowMounted { filesystem, at } => {
                let at = at.display();
                write!(
                    f,
                    "grow the filesystem of type {filesystem} mounted at {at}"
                )
            }
            Self::Bind { source, target } => {
                write!(f, "bind {} to {}", source.display(), target.display())
            }
            Self::BindDevice(target) => write!(f, "bind the device to {}", target.display()),
            Self::RemountReadOnly(path) => {
                write!(f, "make the mount at {} read-only", path.display())
            }
            Self::Restrict { target, flags } => {
                let target = target.display();
                write!(f, "add the options {flags} to the mount at {target}")
            }
            Self::Unmount(path) => write!(f, "unmount {}", path.display()),
            Self::Detach(path) => write!(f, "detach the dead mount at {}", path.display()),
            Self::Flush => f.write_str("write what the kernel holds for the device"),
            Self::Release => f.write_str("wait until the kernel is done with the device"),
            Self::Remove(path) => write!(f, "remove {}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_told_in_words() {
        let mount = |flags: &[&str]| Step::Mount {
            target: "/staging".into(),
            filesystem: Filesystem::Xfs,
            flags: MountFlags::new(flags.iter().map(|&flag| flag.to_owned())).unwrap(),
            read_only: false,
        };
        let format = Step::Format {
            filesystem: Filesystem::Ext4,
            tuning: Tuning::default(),
        };
        for (step, words) in [
            (format, "make a filesystem of type ext4 on the blank device"),
            (mount(&[]), "mount the device as xfs, writable, at /staging"),
            (
                mount(&["noatime"]),
                "mount the device as xfs, writable, at /staging with options noatime",
            ),
            (
                Step::Check(Filesystem::Ext3, Fsck::Preen),
                "check the filesystem of type ext3 (fsck: preen)",
            ),
            (Step::Unmount("/target".into()), "unmount /target"),
        ] {
            assert_eq!(step.to_string(), words);
        }
    }
}
