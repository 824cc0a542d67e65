//! The programs that a node runs.

use std::ffi::OsStr;

/// What staging runs, for each filesystem.
const TOOLS: [&str; 10] = [
    "blkid",
    "blockdev",
    "e2fsck",
    "resize2fs",
    "mkfs.ext4",
    "mkfs.ext3",
    "mkfs.xfs",
    "xfs_growfs",
    "mkfs.btrfs",
    "btrfs",
];

/// Those that are not in this path.
pub(super) fn missing(path: Option<&OsStr>) -> Vec<&'static str> {
    let path = path.unwrap_or_default();
    let is_there = |tool: &&str| std::env::split_paths(path).any(|dir| dir.join(tool).exists());
    TOOLS.into_iter().filter(|tool| !is_there(tool)).collect()
}
