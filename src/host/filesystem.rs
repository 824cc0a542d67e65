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

/// Makes the filesystem. Never with force: these commands then refuse a device that is in use, and
/// those of xfs and btrfs one on which they find something. mkfs.ext3 and mkfs.ext4 ask before they
/// overwrite, but without a terminal nobody is asked and they go on: that the device is blank must
/// be proven by [`super::Host::content`] right before. Nothing is discarded: a blank disk has nothing to discard, and large ones take minutes.
#[must_use]
pub fn make(filesystem: Filesystem, device: &Path) -> Command {
    let command = Command::new(format!("mkfs.{filesystem}")).arg("-q");
    match filesystem {
        // No blocks are kept back for root: the volume belongs to one workload.
        Filesystem::Ext4 | Filesystem::Ext3 => command.args(["-m", "0", "-E", "nodiscard"]),
        Filesystem::Xfs | Filesystem::Btrfs => command.arg("-K"),
    }
    .arg(device)
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

/// Grows an unmounted filesystem to its device, in this order; empty where only a mounted one grows.
#[must_use]
pub fn grow_unmounted(filesystem: Filesystem, device: &Path) -> Vec<Command> {
    match filesystem {
        // resize2fs demands a full check first.
        Filesystem::Ext4 | Filesystem::Ext3 => vec![
            Command::new("e2fsck").args(["-f", "-p"]).arg(device),
            Command::new("resize2fs").arg(device),
        ],
        Filesystem::Xfs | Filesystem::Btrfs => Vec::new(),
    }
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

/// The size that a superblock states, given the first bytes of the device (at least 68 KiB for
/// btrfs). None where it is not such a superblock.
#[must_use]
pub fn stated_size(filesystem: Filesystem, head: &[u8]) -> Option<Bytes> {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => ext_size(head.get(1024..2048)?),
        Filesystem::Xfs => xfs_size(head),
        Filesystem::Btrfs => btrfs_size(head.get(64 << 10..)?),
    }
    .map(Bytes)
}

/// struct ext4_super_block: s_blocks_count_lo at 4, s_log_block_size at 24, s_magic at 56,
/// s_feature_incompat at 96, s_blocks_count_hi at 0x150 with the 64bit feature.
fn ext_size(sb: &[u8]) -> Option<u64> {
    const FEATURE_64BIT: u32 = 0x80;
    if le(sb, 56, 2)? != 0xEF53 {
        return None;
    }
    let has_high = le(sb, 96, 4)? & u64::from(FEATURE_64BIT) != 0;
    let high = if has_high { le(sb, 0x150, 4)? } else { 0 };
    let block = 1024u64.checked_shl(u32::try_from(le(sb, 24, 4)?).ok()?)?;
    ((high << 32) | le(sb, 4, 4)?).checked_mul(block)
}

/// struct xfs_dsb: sb_magicnum at 0, sb_blocksize at 4, sb_dblocks at 8, all big-endian.
fn xfs_size(sb: &[u8]) -> Option<u64> {
    if sb.get(..4)? != b"XFSB" {
        return None;
    }
    let block = u32::from_be_bytes(sb.get(4..8)?.try_into().ok()?);
    let blocks = u64::from_be_bytes(sb.get(8..16)?.try_into().ok()?);
    blocks.checked_mul(u64::from(block))
}

/// struct btrfs_super_block: magic at 64, total_bytes at 112.
fn btrfs_size(sb: &[u8]) -> Option<u64> {
    if sb.get(64..72)? != b"_BHRfS_M" {
        return None;
    }
    le(sb, 112, 8)
}

fn le(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut value = [0; 8];
    value
        .get_mut(..length)?
        .copy_from_slice(bytes.get(at..at + length)?);
    Some(u64::from_le_bytes(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_that_makes_a_filesystem_uses_force() {
        for filesystem in Filesystem::ALL {
            let command = make(filesystem, Path::new("/dev/vdb")).to_string();
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

    #[test]
    fn sizes_are_read_off_superblocks() {
        let mut ext = vec![0; 2048];
        ext[1024 + 4..1024 + 8].copy_from_slice(&5u32.to_le_bytes());
        ext[1024 + 24] = 2;
        ext[1024 + 56..1024 + 58].copy_from_slice(&[0x53, 0xEF]);
        assert_eq!(stated_size(Filesystem::Ext4, &ext), Some(Bytes(5 * 4096)));
        ext[1024 + 96] = 0x80;
        ext[1024 + 0x150] = 1;
        assert_eq!(
            stated_size(Filesystem::Ext4, &ext),
            Some(Bytes(((1 << 32) + 5) * 4096))
        );
        let mut xfs = b"XFSB\0\0\x10\0\0\0\0\0\0\0\0\x03".to_vec();
        assert_eq!(stated_size(Filesystem::Xfs, &xfs), Some(Bytes(3 * 4096)));
        xfs.truncate(12);
        assert_eq!(stated_size(Filesystem::Xfs, &xfs), None);
        assert_eq!(stated_size(Filesystem::Btrfs, &vec![0; 1 << 20]), None);
    }
}
