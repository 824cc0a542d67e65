//! The programs that a node executes.

use std::ffi::OsStr;

/// Required for staging and expanding filesystems.
const TOOLS: [&str; 12] = [
    "blkid",
    "blockdev",
    "sfdisk",
    "partx",
    "e2fsck",
    "resize2fs",
    "mkfs.ext4",
    "mkfs.ext3",
    "mkfs.xfs",
    "xfs_growfs",
    "mkfs.btrfs",
    "btrfs",
];

/// The tools that are not in this `PATH`.
pub(super) fn missing(path: Option<&OsStr>) -> Vec<&'static str> {
    let path = path.unwrap_or_default();
    let exists = |tool: &&str| std::env::split_paths(path).any(|dir| dir.join(tool).exists());
    TOOLS.into_iter().filter(|tool| !exists(tool)).collect()
}
