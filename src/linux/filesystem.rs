//! Commands and options of each filesystem, and of the partition that it is in.

use std::path::Path;

use super::exec::Command;
use crate::model::{Bytes, Filesystem};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckResult {
    Clean,
    /// Errors were found and corrected without data loss.
    Repaired,
    /// Errors remain, which an operator must repair.
    Damaged,
    /// The check itself failed, which proves nothing about the filesystem: the device was in use, memory ran out, or a
    /// signal terminated it.
    Failed,
}

/// mkfs, with the arguments of [`crate::model::Tuning::mkfs_arguments`]. It never uses the force option: the commands
/// then reject a device that is in use, and those of xfs and btrfs also a device with content. mkfs.ext3 and mkfs.ext4
/// ask for confirmation instead, but only on a terminal. The caller must therefore prove with [`super::Host::content`]
/// immediately before that the device is blank. It has no timeout (`node/tools.rs`): a disk of many TiB takes minutes.
pub fn mkfs(filesystem: Filesystem, arguments: &[String], device: &Path) -> Command {
    Command::new(format!("mkfs.{filesystem}")).args(arguments).arg(device)
}

/// Lists the features that mkfs supports, for [`crate::model::Tuning::mkfs_arguments`]: the usage text of mkfs.xfs, the
/// feature list of mkfs.btrfs. `None` for ext, whose features are complete.
pub fn list_mkfs_features(filesystem: Filesystem) -> Option<Command> {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => None,
        Filesystem::Xfs => Some(Command::new("mkfs.xfs")),
        Filesystem::Btrfs => Some(Command::new("mkfs.btrfs").args(["-O", "list-all"])),
    }
}

/// The command with which an operator repairs a damaged filesystem.
pub fn repair_command(filesystem: Filesystem, device: &Path) -> Command {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => Command::new("e2fsck").arg("-f"),
        Filesystem::Xfs => Command::new("xfs_repair"),
        Filesystem::Btrfs => Command::new("btrfs").arg("check"),
    }
    .arg(device)
}

/// Replays only the journal of an unmounted ext filesystem (e2fsck(8), `journal_only`).
pub fn replay_journal(device: &Path) -> Command {
    Command::new("e2fsck").args(["-p", "-E", "journal_only"]).arg(device)
}

/// Checks an unmounted ext filesystem completely, without changes.
pub fn check_read_only(device: &Path) -> Command {
    Command::new("e2fsck").args(["-f", "-n"]).arg(device)
}

/// Checks an ext filesystem before it is mounted, with the repairs that are safe without confirmation. The other
/// filesystems recover when they are mounted.
pub fn check(device: &Path) -> Command {
    Command::new("e2fsck").arg("-p").arg(device)
}

/// Interprets the exit code of [`check`]. e2fsck(8): the bits 1 and 2 mean "corrected", 4 "errors left uncorrected", 8
/// and higher that the check could not be done.
pub fn check_result(code: Option<i32>) -> CheckResult {
    match code {
        Some(0) => CheckResult::Clean,
        Some(1..=3) => CheckResult::Repaired,
        Some(4..=7) => CheckResult::Damaged,
        Some(_) | None => CheckResult::Failed,
    }
}

/// Whether e2fsck rejects a filesystem because of features that it does not support.
pub fn is_unsupported(output: &str) -> bool {
    output.contains("has unsupported feature(s)")
}

/// Grows an unmounted ext filesystem to the size of its device. The first command is the full check that resize2fs
/// requires.
pub fn grow_unmounted(device: &Path) -> [Command; 2] {
    [
        Command::new("e2fsck").args(["-f", "-p"]).arg(device),
        Command::new("resize2fs").arg(device),
    ]
}

pub fn grow_mounted(filesystem: Filesystem, device: &Path, mount_point: &Path) -> Command {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => Command::new("resize2fs").arg(device),
        Filesystem::Xfs => Command::new("xfs_growfs").arg("-d").arg(mount_point),
        Filesystem::Btrfs => Command::new("btrfs")
            .args(["filesystem", "resize", "max"])
            .arg(mount_point),
    }
}

/// Grows partition 1, the only one, to the end of the disk while its filesystem is mounted: first in the table, then in
/// the kernel. sfdisk also moves the backup of a GPT to the end of the disk. It must not inform the kernel, because it
/// would first remove the partition.
pub fn grow_partition(disk: &Path) -> [Command; 2] {
    [
        Command::new("sfdisk")
            .args(["--quiet", "--no-reread", "--no-tell-kernel", "-N", "1"])
            .arg(disk)
            .with_stdin(", +\n"),
        Command::new("partx").args(["--update", "--nr", "1"]).arg(disk),
    ]
}

/// Makes the kernel forget all btrfs devices that are not mounted. They are registered again when they are mounted.
pub fn forget_btrfs_devices() -> Command {
    Command::new("btrfs").args(["device", "scan", "--forget"])
}

/// Mount options that are always set.
pub fn default_mount_options(filesystem: Filesystem) -> &'static [&'static str] {
    match filesystem {
        // A filesystem that was created elsewhere may have `errors=continue`, with which damage spreads while pods
        // write.
        Filesystem::Ext4 | Filesystem::Ext3 => &["errors=remount-ro"],
        // A volume restored from a snapshot has the UUID of its source; both can be mounted on one node.
        Filesystem::Xfs => &["nouuid"],
        Filesystem::Btrfs => &[],
    }
}

/// How much smaller than its device a filesystem can be without being grown: filesystems leave an incomplete allocation
/// group at the end unused. The cloud grows disks by whole GiB.
pub const GROW_TOLERANCE: Bytes = Bytes(32 << 20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Tuning;

    #[test]
    fn mkfs_never_uses_force() {
        for filesystem in Filesystem::ALL {
            let arguments = Tuning::default().mkfs_arguments(filesystem, "").unwrap();
            let command = mkfs(filesystem, &arguments, Path::new("/dev/vdb")).to_string();
            assert!(!command.contains(" -F") && !command.contains(" -f"), "{command}");
            assert!(command.starts_with(&format!("mkfs.{filesystem} ")), "{command}");
            assert!(command.ends_with(" /dev/vdb"), "{command}");
        }
    }

    #[test]
    fn only_a_check_that_leaves_errors_means_damage() {
        assert_eq!(check_result(Some(0)), CheckResult::Clean);
        assert_eq!(check_result(Some(1)), CheckResult::Repaired);
        for code in [4, 5] {
            assert_eq!(check_result(Some(code)), CheckResult::Damaged, "{code}");
        }
        for code in [8, 12, 16, 32, 128] {
            assert_eq!(check_result(Some(code)), CheckResult::Failed, "{code}");
        }
        assert_eq!(check_result(None), CheckResult::Failed);
    }
}
