//! The start of a device, where superblocks are.

use std::fs::File;
use std::io;

use super::samples::read_at;
use crate::model::Bytes;

/// End of the last superblock from the start of the device: that of btrfs, of 4 KiB at 64 KiB.
pub(super) const SUPERBLOCKS: u64 = 68 << 10;

/// Whether the start of the device, where superblocks are, is zero.
pub(super) fn has_blank_start(device: &File, size: Bytes) -> io::Result<bool> {
    Ok(first_nonzero(&superblock_area(device, size)?, 0)?.is_none())
}

/// The offset of the first nonzero byte in what was read at `start`. Whole blocks are compared: a loop over bytes is a
/// hundred times slower in unoptimized builds.
pub(super) fn first_nonzero(bytes: &[u8], start: u64) -> io::Result<Option<u64>> {
    const ZEROES: [u8; 4096] = [0; 4096];
    let blocks = bytes.chunks(ZEROES.len());
    let before = blocks.take_while(|block| **block == ZEROES[..block.len()]);
    let zeroes: usize = before.map(<[u8]>::len).sum();
    let Some(index) = bytes[zeroes..].iter().position(|&byte| byte != 0) else {
        return Ok(None);
    };
    let index = u64::try_from(zeroes + index).map_err(io::Error::other)?;
    Ok(Some(start + index))
}

pub(super) fn superblock_area(file: &File, size: Bytes) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    read_at(file, 0, SUPERBLOCKS.min(size.0), &mut head)?;
    Ok(head)
}
