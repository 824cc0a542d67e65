//! The steps that plans are made of.

use std::path::PathBuf;

use crate::model::{Filesystem, MountFlags};

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Let the kernel write to the device, or not.
    SetDeviceReadOnly(bool),
    /// Make a filesystem on a device that is proven blank.
    Format(Filesystem),
    /// Check an unmounted filesystem, repairing what is safe to repair.
    Check(Filesystem),
    /// Grow an unmounted filesystem.
    GrowUnmounted(Filesystem),
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
    /// Remove the mount at a place.
    Unmount(PathBuf),
    /// Remove an empty directory or file.
    Remove(PathBuf),
}
