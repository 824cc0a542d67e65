//! What differs from filesystem to filesystem: the commands, and how to read sizes off a superblock.

use std::path::Path;

use super::exec::Command;
use crate::model::{Bytes, Filesystem};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// Nothing was wrong.
    Clean,
    /// Something was wrong and has been set right without loss.
    Repaired,
    /// Only a person may decide what to do.
    Broken,
}

/// Makes the filesystem, with the arguments of [`crate::model::Tuning::mkfs_arguments`]. Never with force: these commands then
/// refuse a device that is in use, and those of xfs and btrfs one on which they find something. mkfs.ext3 and mkfs.ext4
/// ask before they overwrite, but without a terminal nobody is asked and they go on: that the device is blank must
/// be proven by [`super::Host::content`] right before.
#[must_use]
pub fn make(filesystem: Filesystem, arguments: &[String], device: &Path) -> Command {
    Command::new(format!("mkfs.{filesystem}"))
        .args(arguments)
        .arg(device)
}

/// What a person runs on a filesystem that is damaged.
#[must_use]
pub fn repair_by_hand(filesystem: Filesystem, device: &Path) -> Command {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => Command::new("e2fsck").arg("-f"),
        Filesystem::Xfs => Command::new("xfs_repair"),
        Filesystem::Btrfs => Command::new("btrfs").arg("check"),
    }
    .arg(device)
}

/// Replays the journal of an unmounted ext filesystem and does nothing else (e2fsck(8), `journal_only`).
#[must_use]
pub fn replay(device: &Path) -> Command {
    Command::new("e2fsck")
        .args(["-p", "-E", "journal_only"])
        .arg(device)
}

/// Checks all of an unmounted ext filesystem and changes nothing.
#[must_use]
pub fn look(device: &Path) -> Command {
    Command::new("e2fsck").args(["-f", "-n"]).arg(device)
}

/// Checks an unmounted filesystem before it is mounted, repairing no more than is safe to repair
/// unasked. None for filesystems that look after themselves when they are mounted.
#[must_use]
pub fn check(filesystem: Filesystem, device: &Path) -> Option<Command> {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => Some(Command::new("e2fsck").arg("-p").arg(device)),
        Filesystem::Xfs | Filesystem::Btrfs => None,
    }
}

/// Whether there is a [`check`] for it.
#[must_use]
pub fn is_checked(filesystem: Filesystem) -> bool {
    matches!(filesystem, Filesystem::Ext4 | Filesystem::Ext3)
}

/// Reads the exit code of [`check`] (e2fsck(8): 1 and 2 are bits for "corrected", 4 and above are
/// errors left, or a check that could not be done).
#[must_use]
pub fn judge_check(code: Option<i32>) -> Checked {
    match code {
        Some(0) => Checked::Clean,
        Some(1..=3) => Checked::Repaired,
        Some(_) | None => Checked::Broken,
    }
}

/// Grows an unmounted ext filesystem to its device, in this order: resize2fs demands a full check first.
#[must_use]
pub fn grow_unmounted(device: &Path) -> [Command; 2] {
    [
        Command::new("e2fsck").args(["-f", "-p"]).arg(device),
        Command::new("resize2fs").arg(device),
    ]
}

/// Grows a mounted filesystem to its device.
#[must_use]
pub fn grow_mounted(filesystem: Filesystem, device: &Path, mounted_at: &Path) -> Command {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => Command::new("resize2fs").arg(device),
        Filesystem::Xfs => Command::new("xfs_growfs").arg("-d").arg(mounted_at),
        Filesystem::Btrfs => Command::new("btrfs")
            .args(["filesystem", "resize", "max"])
            .arg(mounted_at),
    }
}

/// Whether it can grow while unmounted; the others grow while mounted only.
#[must_use]
pub fn grows_unmounted(filesystem: Filesystem) -> bool {
    matches!(filesystem, Filesystem::Ext4 | Filesystem::Ext3)
}

/// Options of every mount.
#[must_use]
pub fn mount_defaults(filesystem: Filesystem) -> &'static [&'static str] {
    match filesystem {
        // A volume restored from a snapshot has its origin's UUID; both may be on one node.
        Filesystem::Xfs => &["nouuid"],
        Filesystem::Ext4 | Filesystem::Ext3 | Filesystem::Btrfs => &[],
    }
}

/// How much a filesystem may lie below its device without being worth growing: all of them leave a
/// tail that is too small for an allocation group. Clouds grow disks by whole GiB.
pub const SLACK: Bytes = Bytes(32 << 20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tuning;

    #[test]
    fn no_command_that_makes_a_filesystem_uses_force() {
        for filesystem in Filesystem::ALL {
            let arguments = Tuning::default().mkfs_arguments(filesystem).unwrap();
            let command = make(filesystem, &arguments, Path::new("/dev/vdb")).to_string();
            assert!(
                !command.contains(" -F") && !command.contains(" -f"),
                "{command}"
            );
            assert!(
                command.starts_with(&format!("mkfs.{filesystem} ")),
                "{command}"
            );
            assert!(command.ends_with(" /dev/vdb"), "{command}");
        }
    }

    #[test]
    fn a_check_that_leaves_errors_or_was_killed_is_broken() {
        assert_eq!(judge_check(Some(0)), Checked::Clean);
        assert_eq!(judge_check(Some(1)), Checked::Repaired);
        for code in [Some(4), Some(8), Some(12), Some(32), None] {
            assert_eq!(judge_check(code), Checked::Broken, "{code:?}");
        }
    }
}
