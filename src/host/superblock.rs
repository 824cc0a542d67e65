//! Superblocks of filesystems, parsed from the first bytes of a device.

use std::time::Duration;

use jiff::Timestamp;

use crate::model::{Bytes, Filesystem};

/// The superblocks on a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Superblocks {
    pub(super) sizes: Vec<(Filesystem, Bytes)>,
    /// The filesystem whose mkfs did not complete.
    pub(super) unfinished: Option<Filesystem>,
    /// The internal log of xfs, which statvfs(3) does not count.
    pub(super) xfs_log: Option<Bytes>,
    pub(super) ext_errors: bool,
    pub(super) ext_check: Option<ExtCheck>,
    /// Whether an ext filesystem accepts no more writes after an error (tune2fs(8), `-e remount-ro`).
    pub(super) ext_stops_after_error: bool,
    /// When an ext filesystem was last mounted writable, since 1970.
    pub(super) ext_mounted: Option<Duration>,
    /// Whether a btrfs has a log that must be replayed.
    pub(super) btrfs_log: bool,
}

impl Superblocks {
    /// Parses the first bytes of a device, at least 68 KiB for btrfs.
    pub(super) fn parse(head: &[u8]) -> Self {
        let sizes = Filesystem::ALL
            .into_iter()
            .filter_map(|filesystem| Some((filesystem, stated_size(filesystem, head)?)));
        Self {
            sizes: sizes.collect(),
            unfinished: unfinished(head),
            xfs_log: xfs_log(head).map(Bytes),
            ext_errors: ext_errors(head).unwrap_or(false),
            ext_check: ExtCheck::parse(head),
            ext_stops_after_error: ext_stops_after_error(head).unwrap_or(false),
            ext_mounted: ext_mounted(head),
            btrfs_log: btrfs_log(head).unwrap_or(false),
        }
    }

    /// The size of this filesystem; `None` if it has no superblock.
    #[must_use]
    pub fn size(&self, filesystem: Filesystem) -> Option<Bytes> {
        let stated = self.sizes.iter().find(|(of, _)| *of == filesystem);
        stated.map(|(_, size)| *size)
    }

    /// The size of this filesystem, which is mounted, and of which statvfs(3) returned this total. The kernel writes the
    /// superblock of a grown xfs later, and not through the page cache of the device.
    #[must_use]
    pub fn mounted_size(&self, filesystem: Filesystem, total: Bytes) -> Option<Bytes> {
        match (filesystem, self.xfs_log) {
            (Filesystem::Xfs, Some(log)) => Some(Bytes(total.0 + log.0)),
            _ => self.size(filesystem),
        }
    }

    /// Whether an ext filesystem is marked as having errors.
    #[must_use]
    pub fn has_ext_errors(&self) -> bool {
        self.ext_errors
    }

    /// Whether `e2fsck -p` checks an ext filesystem completely (e2fsck/unix.c, `check_if_skip`).
    #[must_use]
    pub fn demands_full_check(&self, now: Timestamp) -> bool {
        self.ext_check.is_some_and(|check| check.is_due(now))
    }

    /// Whether a btrfs has a log that must be replayed.
    #[must_use]
    pub fn has_btrfs_log(&self) -> bool {
        self.btrfs_log
    }
}

/// When a complete check of an ext filesystem is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ExtCheck {
    /// `EXT4_VALID_FS` is 1, `EXT4_ERROR_FS` 2.
    state: u64,
    mounts: u64,
    /// Values of 0 and from 0x8000 (negative) mean that the number of mounts is not limited.
    max_mounts: u64,
    /// Seconds since 1970.
    checked: u64,
    /// In seconds; 0 without a limit.
    interval: u64,
}

impl ExtCheck {
    /// struct ext4_super_block: s_mnt_count at 52, s_max_mnt_count at 54, s_state at 58, s_lastcheck at 64 and
    /// s_checkinterval at 68.
    fn parse(head: &[u8]) -> Option<Self> {
        let sb = head.get(1024..2048)?;
        let check = Self {
            state: le(sb, 58, 2)?,
            mounts: le(sb, 52, 2)?,
            max_mounts: le(sb, 54, 2)?,
            checked: le(sb, 64, 4)?,
            interval: le(sb, 68, 4)?,
        };
        (le(sb, 56, 2)? == 0xEF53).then_some(check)
    }

    fn is_due(self, now: Timestamp) -> bool {
        let now = u64::try_from(now.as_second()).unwrap_or_default();
        let is_limited = (1..0x8000).contains(&self.max_mounts);
        self.state & 3 != 1
            || is_limited && self.mounts >= self.max_mounts
            || self.interval > 0 && now.saturating_sub(self.checked) >= self.interval
    }
}

/// The size that a superblock states, given the first bytes of the device (at least 68 KiB for
/// btrfs). None where it is not such a superblock.
fn stated_size(filesystem: Filesystem, head: &[u8]) -> Option<Bytes> {
    match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => ext_size(head.get(1024..2048)?),
        Filesystem::Xfs => xfs_size(head),
        Filesystem::Btrfs => btrfs_size(head.get(64 << 10..)?),
    }
    .map(Bytes)
}

/// The filesystem whose superblock says that its making never came to an end, given the first bytes of
/// the device (at least 68 KiB for btrfs). ext writes its superblock last, so without its end there is none.
fn unfinished(head: &[u8]) -> Option<Filesystem> {
    // struct xfs_dsb: sb_inprogress at 126, which mkfs.xfs clears at its end.
    if head.starts_with(b"XFSB") && head.get(126).is_some_and(|&flag| flag != 0) {
        return Some(Filesystem::Xfs);
    }
    // BTRFS_MAGIC_TEMPORARY, which mkfs.btrfs replaces at its end.
    let magic = head.get((64 << 10) + 64..(64 << 10) + 72)?;
    (magic == b"!BHRfS_M").then_some(Filesystem::Btrfs)
}

/// struct ext4_super_block: s_state at 58, of which bit 1 (`EXT4_ERROR_FS`) stays until a check clears it.
fn ext_errors(head: &[u8]) -> Option<bool> {
    let sb = head.get(1024..2048)?;
    Some(le(sb, 56, 2)? == 0xEF53 && le(sb, 58, 2)? & 2 != 0)
}

/// struct ext4_super_block: s_mtime at 44, with 8 higher bits at 0x275.
fn ext_mounted(head: &[u8]) -> Option<Duration> {
    let sb = head.get(1024..2048)?;
    let seconds = (le(sb, 0x275, 1)? << 32) | le(sb, 44, 4)?;
    (le(sb, 56, 2)? == 0xEF53).then(|| Duration::from_secs(seconds))
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

/// struct xfs_dsb: sb_blocksize at 4, sb_logstart at 48, which is 0 for an external log, and sb_logblocks at 96.
fn xfs_log(sb: &[u8]) -> Option<u64> {
    if sb.get(..4)? != b"XFSB" {
        return None;
    }
    if sb.get(48..56)?.iter().all(|&byte| byte == 0) {
        return Some(0);
    }
    let block = u32::from_be_bytes(sb.get(4..8)?.try_into().ok()?);
    let blocks = u32::from_be_bytes(sb.get(96..100)?.try_into().ok()?);
    u64::from(blocks).checked_mul(u64::from(block))
}

/// struct btrfs_super_block: magic at 64, total_bytes at 112.
fn btrfs_size(sb: &[u8]) -> Option<u64> {
    if sb.get(64..72)? != b"_BHRfS_M" {
        return None;
    }
    le(sb, 112, 8)
}

/// struct btrfs_super_block: log_root at 96.
fn btrfs_log(head: &[u8]) -> Option<bool> {
    let sb = head.get(64 << 10..)?;
    Some(btrfs_size(sb).is_some() && le(sb, 96, 8)? != 0)
}

/// struct ext4_super_block: s_errors at 60, which is 2 for `EXT4_ERRORS_RO`.
fn ext_stops_after_error(head: &[u8]) -> Option<bool> {
    let sb = head.get(1024..2048)?;
    Some(le(sb, 56, 2)? == 0xEF53 && le(sb, 60, 2)? == 2)
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

    #[test]
    fn a_full_check_is_due_after_errors_mounts_or_time() {
        let now = Timestamp::from_second(2_000_000_000).unwrap();
        let clean = ExtCheck {
            state: 1,
            mounts: 30,
            max_mounts: 0xFFFF,
            checked: 1_900_000_000,
            interval: 0,
        };
        assert!(!clean.is_due(now));
        let seldom = ExtCheck {
            max_mounts: 31,
            interval: 100_000_001,
            ..clean
        };
        assert!(!seldom.is_due(now));
        for due in [
            ExtCheck { state: 3, ..clean },
            ExtCheck { state: 0, ..clean },
            ExtCheck {
                max_mounts: 30,
                ..clean
            },
            ExtCheck {
                interval: 100_000_000,
                ..clean
            },
        ] {
            assert!(due.is_due(now), "{due:?}");
        }
    }

    #[test]
    fn an_ext_filesystem_with_errors_is_known_by_its_state() {
        let mut ext = vec![0; 2048];
        ext[1024 + 56..1024 + 58].copy_from_slice(&[0x53, 0xEF]);
        ext[1024 + 58] = 1;
        assert!(!Superblocks::parse(&ext).ext_errors);
        ext[1024 + 58] = 3;
        assert!(Superblocks::parse(&ext).ext_errors);
        assert!(!Superblocks::parse(&ext).ext_stops_after_error);
        ext[1024 + 60] = 2;
        assert!(Superblocks::parse(&ext).ext_stops_after_error);
    }
}
