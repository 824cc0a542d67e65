//! The steps that plans are made of.

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
