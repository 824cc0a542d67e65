//! How full a filesystem is.

use std::path::Path;

use nix::sys::statvfs::statvfs;

use super::error::{IoResult, Result};

/// Totals of a mounted filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub bytes: Amount,
    /// Inodes; all zero where the filesystem makes them as needed (btrfs).
    pub inodes: Amount,
}

/// How much of something there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount {
    pub total: u64,
    pub used: u64,
    /// Free for the workload; less than total minus used where some is kept back.
    pub available: u64,
}

pub(super) fn usage(path: &Path) -> Result<Usage> {
    let stat = statvfs(path).io_context("take statistics of", path)?;
    let unit = stat.fragment_size();
    let bytes = Amount {
        total: stat.blocks().saturating_mul(unit),
        used: stat
            .blocks()
            .saturating_sub(stat.blocks_free())
            .saturating_mul(unit),
        available: stat.blocks_available().saturating_mul(unit),
    };
    let inodes = Amount {
        total: stat.files(),
        used: stat.files().saturating_sub(stat.files_free()),
        available: stat.files_available(),
    };
    Ok(Usage { bytes, inodes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_and_available_lie_within_the_total() {
        let usage = usage(Path::new("/")).unwrap();
        assert!(usage.bytes.total > 0);
        assert!(usage.bytes.used + usage.bytes.available <= usage.bytes.total);
    }
}
