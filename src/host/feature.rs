//! Features of a filesystem that the running kernel does not support: the reason why it cannot be mounted, which the kernel
//! states only in its log.

use super::kernel::KernelVersion;
use crate::model::Filesystem;

/// A set of feature flags in a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flags {
    /// Required for every mount.
    Incompat,
    /// Required for a writable mount.
    ReadOnlyCompat,
}

use Flags::{Incompat, ReadOnlyCompat};

/// A feature: flag, name in the tools, and the first kernel that supports it.
type Feature = (Flags, u64, &'static str, (u32, u32));

/// fs/ext4/ext4.h: `EXT4_FEATURE_INCOMPAT_SUPP` and `EXT4_FEATURE_RO_COMPAT_SUPP`. All supported kernels have the flags
/// that are not listed. The last one is set while a filesystem with an orphan file is mounted.
const EXT: [Feature; 3] = [
    (Incompat, 0x2_0000, "casefold", (5, 2)),
    (ReadOnlyCompat, 0x8000, "verity", (5, 4)),
    (ReadOnlyCompat, 0x1_0000, "orphan_file", (5, 15)),
];
const EXT_KNOWN: (u64, u64) = (0x3_e7d6, 0x1_b77f);

/// fs/xfs/libxfs/xfs_format.h.
const XFS: [Feature; 9] = [
    (ReadOnlyCompat, 0x8, "inobtcount", (5, 10)),
    (Incompat, 0x8, "bigtime", (5, 10)),
    (Incompat, 0x10, "needsrepair", (5, 11)),
    (Incompat, 0x20, "nrext64", (5, 19)),
    (Incompat, 0x40, "exchange", (6, 10)),
    (Incompat, 0x80, "parent", (6, 10)),
    (Incompat, 0x100, "metadir", (6, 13)),
    (Incompat, 0x200, "zoned", (6, 15)),
    (Incompat, 0x400, "zone_gaps", (6, 15)),
];
const XFS_KNOWN: (u64, u64) = (0x7ff, 0xf);

/// include/uapi/linux/btrfs.h.
const BTRFS: [Feature; 6] = [
    (ReadOnlyCompat, 0x4, "verity", (5, 15)),
    (ReadOnlyCompat, 0x8, "block-group-tree", (6, 1)),
    (Incompat, 0x1000, "zoned", (5, 12)),
    (Incompat, 0x2000, "extent-tree-v2", (5, 18)),
    (Incompat, 0x4000, "raid-stripe-tree", (6, 7)),
    (Incompat, 0x1_0000, "squota", (6, 7)),
];
const BTRFS_KNOWN: (u64, u64) = (0x1_7fff, 0xf);

/// The incompat and ro_compat flags of a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FeatureFlags {
    incompat: u64,
    read_only_compat: u64,
}

impl FeatureFlags {
    /// Of an ext4 with an orphan file that was not unmounted cleanly.
    #[cfg(test)]
    pub(crate) const ORPHAN_FILE: Self = Self {
        incompat: 0,
        read_only_compat: 0x1_0000,
    };

    /// Parses the first bytes of a device.
    pub(super) fn parse(filesystem: Filesystem, head: &[u8]) -> Option<Self> {
        let at = |offset: usize, length: usize| head.get(offset..offset + length);
        let le32 = |offset| {
            Some(u64::from(u32::from_le_bytes(
                at(offset, 4)?.try_into().ok()?,
            )))
        };
        let be32 = |offset| {
            Some(u64::from(u32::from_be_bytes(
                at(offset, 4)?.try_into().ok()?,
            )))
        };
        let le64 = |offset| Some(u64::from_le_bytes(at(offset, 8)?.try_into().ok()?));
        let (incompat, read_only_compat) = match filesystem {
            // struct ext4_super_block: s_feature_incompat at 0x60, s_feature_ro_compat at 0x64.
            Filesystem::Ext4 | Filesystem::Ext3 => (le32(1024 + 0x60)?, le32(1024 + 0x64)?),
            // struct xfs_dsb: sb_features_ro_compat at 212, sb_features_incompat at 216.
            Filesystem::Xfs => (be32(216)?, be32(212)?),
            // struct btrfs_super_block at 64 KiB: compat_ro_flags at 180, incompat_flags at 188.
            Filesystem::Btrfs => (le64((64 << 10) + 188)?, le64((64 << 10) + 180)?),
        };
        Some(Self {
            incompat,
            read_only_compat,
        })
    }

    /// The features that the kernel does not support, with the first version that supports each.
    pub(super) fn unsupported(self, filesystem: Filesystem, kernel: KernelVersion) -> Vec<String> {
        let (features, known): (&[Feature], _) = match filesystem {
            Filesystem::Ext4 | Filesystem::Ext3 => (&EXT, EXT_KNOWN),
            Filesystem::Xfs => (&XFS, XFS_KNOWN),
            Filesystem::Btrfs => (&BTRFS, BTRFS_KNOWN),
        };
        let is_newer = |(of, flag, _, since): &&Feature| {
            let set = match of {
                Incompat => self.incompat,
                ReadOnlyCompat => self.read_only_compat,
            };
            set & flag != 0 && KernelVersion::from(*since) > kernel
        };
        let newer = features.iter().filter(is_newer);
        let mut names: Vec<String> = newer
            .map(|(_, _, name, (major, minor))| format!("{name} (Linux {major}.{minor})"))
            .collect();
        for (set, known) in [(self.incompat, known.0), (self.read_only_compat, known.1)] {
            if set & !known != 0 {
                names.push(format!("unknown features {:#x}", set & !known));
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use Filesystem::{Btrfs, Ext4, Xfs};

    use super::*;

    fn unsupported(head: &[u8], filesystem: Filesystem, release: &str) -> Vec<String> {
        let flags = FeatureFlags::parse(filesystem, head).unwrap();
        flags.unsupported(filesystem, KernelVersion::parse(release).unwrap())
    }

    fn head(writes: &[(usize, &[u8])]) -> Vec<u8> {
        let mut head = vec![0; 68 << 10];
        for (at, bytes) in writes {
            head[*at..*at + bytes.len()].copy_from_slice(bytes);
        }
        head
    }

    #[test]
    fn features_of_newer_kernels_are_named() {
        let xfs = head(&[(216, &[0, 0, 0, 0x29])]);
        let old = "5.10.262";
        assert_eq!(unsupported(&xfs, Xfs, old), ["nrext64 (Linux 5.19)"]);
        assert!(unsupported(&xfs, Xfs, "6.1.0").is_empty());
        let ext = head(&[(1024 + 0x64, &[0, 0, 1, 0])]);
        assert_eq!(unsupported(&ext, Ext4, old), ["orphan_file (Linux 5.15)"]);
        let btrfs = head(&[((64 << 10) + 180, &[0xb])]);
        assert_eq!(
            unsupported(&btrfs, Btrfs, old),
            ["block-group-tree (Linux 6.1)"]
        );
    }

    #[test]
    fn unknown_features_are_reported_by_flag() {
        let ext = head(&[(1024 + 0x60, &[0, 0, 0, 0x80])]);
        assert_eq!(
            unsupported(&ext, Ext4, "6.18.0"),
            ["unknown features 0x80000000"]
        );
    }
}
