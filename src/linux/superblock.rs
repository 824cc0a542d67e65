//! Superblocks of filesystems, parsed from the first bytes of a device.

use std::time::Duration;

use jiff::Timestamp;

use crate::model::{Bytes, Filesystem};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Superblocks {
    /// The size that each superblock states.
    pub(super) sizes: Vec<(Filesystem, Bytes)>,
    pub(super) unfinished: Option<Filesystem>,
    /// The internal log of xfs, which statvfs(3) does not count.
    pub(super) xfs_log: Option<Bytes>,
    pub ext: Option<ExtState>,
    /// Whether a btrfs has a log that must be replayed.
    pub has_btrfs_log: bool,
}

impl Superblocks {
    /// Parses the first bytes of a device, at least 68 KiB for btrfs.
    pub(super) fn parse(head: &[u8]) -> Self {
        let sizes = Filesystem::ALL
            .into_iter()
            .filter_map(|filesystem| Some((filesystem, Bytes(stated_size(filesystem, head)?))));
        Self {
            sizes: sizes.collect(),
            unfinished: unfinished(head),
            xfs_log: xfs_log(head).map(Bytes),
            ext: ExtState::parse(head),
            has_btrfs_log: has_btrfs_log(head).unwrap_or(false),
        }
    }

    /// The size of this filesystem; `None` if it has no superblock.
    pub fn size(&self, filesystem: Filesystem) -> Option<Bytes> {
        let stated = self.sizes.iter().find(|(of, _)| *of == filesystem);
        stated.map(|(_, size)| *size)
    }

    /// The size of this filesystem, which is mounted, and of which statvfs(3) returned this total. The kernel writes
    /// the superblock of a grown xfs later, and not through the page cache of the device.
    pub fn mounted_size(&self, filesystem: Filesystem, total: Bytes) -> Option<Bytes> {
        match (filesystem, self.xfs_log) {
            (Filesystem::Xfs, Some(log)) => Some(Bytes(total.0.saturating_add(log.0))),
            _ => self.size(filesystem),
        }
    }
}

const EXT4_VALID_FS: u64 = 1;
/// Remains set until a check clears it.
const EXT4_ERROR_FS: u64 = 2;
const EXT4_ERRORS_RO: u64 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtState {
    pub(super) state: u64,
    pub(super) on_error: u64,
    pub(super) mounts: u64,
    /// Values of 0 and from 0x8000 (negative) mean that the number of mounts is not limited.
    pub(super) max_mounts: u64,
    /// Seconds since 1970.
    pub(super) checked: u64,
    /// Seconds between two checks; 0 without a limit.
    pub(super) check_interval: u64,
    /// When the filesystem was last mounted writable, since 1970.
    pub(super) mounted: Duration,
}

impl ExtState {
    /// struct ext4_super_block: s_mtime at 44, with 8 higher bits at 0x275, s_mnt_count at 52, s_max_mnt_count at 54,
    /// s_state at 58, s_errors at 60, s_lastcheck at 64 and s_checkinterval at 68.
    fn parse(head: &[u8]) -> Option<Self> {
        let sb = ext_superblock(head)?;
        Some(Self {
            state: le(sb, 58, 2)?,
            on_error: le(sb, 60, 2)?,
            mounts: le(sb, 52, 2)?,
            max_mounts: le(sb, 54, 2)?,
            checked: le(sb, 64, 4)?,
            check_interval: le(sb, 68, 4)?,
            mounted: Duration::from_secs((le(sb, 0x275, 1)? << 32) | le(sb, 44, 4)?),
        })
    }

    pub fn has_errors(self) -> bool {
        self.state & EXT4_ERROR_FS != 0
    }

    /// Whether the filesystem rejects writes after an error (tune2fs(8), `-e remount-ro`).
    pub(super) fn stops_after_error(self) -> bool {
        self.on_error == EXT4_ERRORS_RO
    }

    /// Whether `e2fsck -p` checks the filesystem completely (e2fsck/unix.c, `check_if_skip`).
    pub fn demands_full_check(self, now: Timestamp) -> bool {
        let now = u64::try_from(now.as_second()).unwrap_or_default();
        let is_limited = (1..0x8000).contains(&self.max_mounts);
        self.state & (EXT4_VALID_FS | EXT4_ERROR_FS) != EXT4_VALID_FS
            || is_limited && self.mounts >= self.max_mounts
            || self.check_interval > 0 && now.saturating_sub(self.checked) >= self.check_interval
    }
}

/// The size that a superblock states; `None` if it is not one of this filesystem.
fn stated_size(filesystem: Filesystem, head: &[u8]) -> Option<u64> {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => ext_size(head),
        Filesystem::Xfs => xfs_size(head),
        // struct btrfs_super_block: total_bytes at 112.
        Filesystem::Btrfs => le(btrfs_superblock(head)?, 112, 8),
    }
}

/// The filesystem whose superblock shows that its mkfs did not complete. mkfs of ext writes its superblock last, so an
/// incomplete one has none.
fn unfinished(head: &[u8]) -> Option<Filesystem> {
    // struct xfs_dsb: sb_inprogress at 126, which mkfs.xfs clears at its end.
    if xfs_superblock(head).is_some() && head.get(126).is_some_and(|&flag| flag != 0) {
        return Some(Filesystem::Xfs);
    }
    // BTRFS_MAGIC_TEMPORARY, which mkfs.btrfs replaces at its end.
    let magic = head.get((64 << 10) + 64..(64 << 10) + 72)?;
    (magic == b"!BHRfS_M").then_some(Filesystem::Btrfs)
}

/// struct ext4_super_block at 1 KiB: s_magic at 56.
fn ext_superblock(head: &[u8]) -> Option<&[u8]> {
    let sb = head.get(1024..2048)?;
    (le(sb, 56, 2)? == 0xEF53).then_some(sb)
}

/// struct ext4_super_block: s_blocks_count_lo at 4, s_log_block_size at 24, s_feature_incompat at 96, s_blocks_count_hi
/// at 0x150 with the 64bit feature.
fn ext_size(head: &[u8]) -> Option<u64> {
    const FEATURE_64BIT: u64 = 0x80;
    let sb = ext_superblock(head)?;
    let has_high = le(sb, 96, 4)? & FEATURE_64BIT != 0;
    let high = if has_high { le(sb, 0x150, 4)? } else { 0 };
    // The largest block has 64 KiB.
    let log = u32::try_from(le(sb, 24, 4)?).ok().filter(|log| *log <= 6)?;
    ((high << 32) | le(sb, 4, 4)?).checked_mul(1024 << log)
}

/// struct xfs_dsb: sb_magicnum at 0.
fn xfs_superblock(head: &[u8]) -> Option<&[u8]> {
    head.starts_with(b"XFSB").then_some(head)
}

/// struct xfs_dsb: sb_blocksize at 4, sb_dblocks at 8, all big-endian.
fn xfs_size(head: &[u8]) -> Option<u64> {
    let sb = xfs_superblock(head)?;
    be(sb, 8, 8)?.checked_mul(be(sb, 4, 4)?)
}

/// struct xfs_dsb: sb_blocksize at 4, sb_logstart at 48, which is 0 for an external log, and sb_logblocks at 96.
fn xfs_log(head: &[u8]) -> Option<u64> {
    let sb = xfs_superblock(head)?;
    if be(sb, 48, 8)? == 0 {
        return Some(0);
    }
    be(sb, 96, 4)?.checked_mul(be(sb, 4, 4)?)
}

/// struct btrfs_super_block at 64 KiB: magic at 64.
fn btrfs_superblock(head: &[u8]) -> Option<&[u8]> {
    let sb = head.get(64 << 10..)?;
    (sb.get(64..72)? == b"_BHRfS_M").then_some(sb)
}

/// struct btrfs_super_block: log_root at 96.
fn has_btrfs_log(head: &[u8]) -> Option<bool> {
    Some(le(btrfs_superblock(head)?, 96, 8)? != 0)
}

fn le(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?.iter().rev();
    Some(bytes.fold(0, |value, &byte| (value << 8) | u64::from(byte)))
}

fn be(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?.iter();
    Some(bytes.fold(0, |value, &byte| (value << 8) | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_from_superblocks() {
        let mut ext = vec![0; 2048];
        ext[1024 + 4..1024 + 8].copy_from_slice(&5u32.to_le_bytes());
        ext[1024 + 24] = 2;
        ext[1024 + 56..1024 + 58].copy_from_slice(&[0x53, 0xEF]);
        assert_eq!(stated_size(Filesystem::Ext4, &ext), Some(5 * 4096));
        ext[1024 + 96] = 0x80;
        ext[1024 + 0x150] = 1;
        assert_eq!(stated_size(Filesystem::Ext4, &ext), Some(((1 << 32) + 5) * 4096));
        for log in [7, 60] {
            ext[1024 + 24] = log;
            assert_eq!(stated_size(Filesystem::Ext4, &ext), None);
        }
        let mut xfs = b"XFSB\0\0\x10\0\0\0\0\0\0\0\0\x03".to_vec();
        assert_eq!(stated_size(Filesystem::Xfs, &xfs), Some(3 * 4096));
        xfs.resize(100, 0);
        xfs[48] = 1;
        xfs[99] = 1;
        let mounted = Superblocks::parse(&xfs).mounted_size(Filesystem::Xfs, Bytes(u64::MAX));
        assert_eq!(mounted, Some(Bytes(u64::MAX)));
        xfs.truncate(12);
        assert_eq!(stated_size(Filesystem::Xfs, &xfs), None);
        assert_eq!(stated_size(Filesystem::Btrfs, &vec![0; 1 << 20]), None);
    }

    #[test]
    fn a_full_check_is_due_after_errors_mounts_or_time() {
        let now = Timestamp::from_second(2_000_000_000).unwrap();
        let clean = ExtState {
            state: 1,
            mounts: 30,
            max_mounts: 0xFFFF,
            checked: 1_900_000_000,
            ..ExtState::default()
        };
        assert!(!clean.demands_full_check(now));
        let seldom = ExtState {
            max_mounts: 31,
            check_interval: 100_000_001,
            ..clean
        };
        assert!(!seldom.demands_full_check(now));
        for due in [
            ExtState { state: 3, ..clean },
            ExtState { state: 0, ..clean },
            ExtState {
                max_mounts: 30,
                ..clean
            },
            ExtState {
                check_interval: 100_000_000,
                ..clean
            },
        ] {
            assert!(due.demands_full_check(now), "{due:?}");
        }
    }

    #[test]
    fn the_state_of_an_ext_filesystem_records_errors() {
        let mut ext = vec![0; 2048];
        ext[1024 + 56..1024 + 58].copy_from_slice(&[0x53, 0xEF]);
        ext[1024 + 58] = 1;
        assert!(!Superblocks::parse(&ext).ext.unwrap().has_errors());
        ext[1024 + 58] = 3;
        assert!(Superblocks::parse(&ext).ext.unwrap().has_errors());
        assert!(!Superblocks::parse(&ext).ext.unwrap().stops_after_error());
        ext[1024 + 60] = 2;
        assert!(Superblocks::parse(&ext).ext.unwrap().stops_after_error());
    }
}
