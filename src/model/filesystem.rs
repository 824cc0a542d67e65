//! The supported filesystems.

use std::fmt;
use std::str::FromStr;

/// A filesystem that the driver can create, mount and grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Filesystem {
    #[default]
    Ext4,
    Ext3,
    Xfs,
    Btrfs,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("fsType {0:?} is not supported: allowed are ext4, ext3, xfs, btrfs")]
pub struct UnknownFilesystem(String);

impl Filesystem {
    pub const ALL: [Self; 4] = [Self::Ext4, Self::Ext3, Self::Xfs, Self::Btrfs];

    /// Whether e2fsck checks it, and resize2fs can grow it while it is unmounted.
    pub fn is_ext(self) -> bool {
        matches!(self, Self::Ext4 | Self::Ext3)
    }

    /// Whether the kernel mounts a filesystem of type `found` as this one.
    pub fn mounts(self, found: Self) -> bool {
        self == found || (self, found) == (Self::Ext4, Self::Ext3)
    }

    /// The name of the kernel and blkid.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext3 => "ext3",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }
}

impl FromStr for Filesystem {
    type Err = UnknownFilesystem;

    fn from_str(name: &str) -> Result<Self, UnknownFilesystem> {
        Self::ALL
            .into_iter()
            .find(|filesystem| filesystem.as_str().eq_ignore_ascii_case(name))
            .ok_or_else(|| UnknownFilesystem(name.to_owned()))
    }
}

impl fmt::Display for Filesystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_compare_without_case() {
        assert_eq!("XFS".parse(), Ok(Filesystem::Xfs));
    }

    #[test]
    fn the_error_of_an_unsupported_name_lists_the_supported_ones() {
        let text = "ntfs".parse::<Filesystem>().unwrap_err().to_string();
        assert!(text.contains("\"ntfs\""), "{text}");
        for filesystem in Filesystem::ALL {
            assert!(text.contains(filesystem.as_str()), "{text}");
        }
    }
}
