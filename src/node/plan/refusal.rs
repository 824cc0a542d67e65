//! Why a plan has no steps.

use std::path::PathBuf;

use crate::model::Filesystem;

/// Why nothing is done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The disk has another filesystem.
    #[error("{device} has {found}, but {wanted} was asked for")]
    WrongFilesystem {
        /// The device.
        device: String,
        /// What it has.
        found: Filesystem,
        /// What was asked for.
        wanted: Filesystem,
    },
    /// The disk has something that is not ours.
    #[error("{device} is neither blank nor has it {wanted}: it holds {found}")]
    ForeignData {
        /// The device.
        device: String,
        /// What it holds.
        found: String,
        /// What was asked for.
        wanted: Filesystem,
    },
    /// A mkfs was cut off, and what is there now may be somebody's.
    #[error(
        "{device} holds {found}: {why}; if nobody needs the content, wipe the disk by hand \
         (wipefs -a, then blkdiscard -z)"
    )]
    Unfinished {
        /// The device.
        device: String,
        /// What it holds.
        found: String,
        /// What was cut off, and why it is not finished.
        why: String,
    },
    /// Partitions or devices are built on it.
    #[error("{device} is in use by {by}")]
    Held {
        /// The device.
        device: String,
        /// By what.
        by: String,
    },
    /// A filesystem must be made, and nothing may be written.
    #[error("{device} is blank, and read-only use never formats a disk")]
    BlankReadOnly {
        /// The device.
        device: String,
    },
    /// The volume is mounted where it should not be.
    #[error("{device} is mounted at {at}")]
    MountedElsewhere {
        /// The device.
        device: String,
        /// Where.
        at: String,
    },
    /// Something else is mounted at the path.
    #[error("{source_name} is mounted at {}, not this volume", path.display())]
    Occupied {
        /// The path.
        path: PathBuf,
        /// What is mounted there.
        source_name: String,
    },
    /// The path is not of the needed kind.
    #[error("{} is {found}, not {wanted}", path.display())]
    BadTarget {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// It is there already, in another way.
    #[error("it is already at {} {found}, {wanted} was asked for", path.display())]
    Incompatible {
        /// The path.
        path: PathBuf,
        /// How it is there.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// It must be staged first.
    #[error("it is not staged at {}", staging.display())]
    NotStaged {
        /// The staging path.
        staging: PathBuf,
    },
    /// It cannot be published writable.
    #[error("it is staged read-only at {}", staging.display())]
    StagedReadOnly {
        /// The staging path.
        staging: PathBuf,
    },
    /// Only one target is allowed.
    #[error("its access mode allows one target, and it is published at {at}")]
    SingleTarget {
        /// The other one.
        at: String,
    },
    /// A device cannot be read-only and writable at once.
    #[error("the device is published {found} at {at}, and a device is one or the other as a whole")]
    MixedAccess {
        /// How.
        found: &'static str,
        /// Where.
        at: String,
    },
    /// It grows only where it is mounted writable.
    #[error("{device} is mounted read-only: its filesystem cannot grow")]
    GrowReadOnly {
        /// The device.
        device: String,
    },
}
