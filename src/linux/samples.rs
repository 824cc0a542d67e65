//! The ranges of a device that must be zero if it is blank: the head, the tail, and samples between them. After the
//! head was wiped, backup superblocks and files of a filesystem remain, and an unknown format may begin at any offset.
//! Reading the whole disk would take minutes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::model::Bytes;

/// Bytes at the start that must be zero on a blank disk.
pub(super) const HEAD: u64 = 4 << 20;

/// Bytes at the end that must be zero on a blank disk: some formats place metadata there.
pub(super) const TAIL: u64 = 1 << 20;

/// Bytes per read. Many volumes are staged concurrently, and their buffers add up.
pub(super) const CHUNK: u64 = 32 << 10;

/// Length of a sample. The offset of each is a multiple of it.
const SAMPLE: u64 = 4 << 10;

/// Number of samples that are distributed evenly. It is a multiple of 4: xfs divides most disks into four allocation
/// groups, each of which begins with a superblock.
const SPREAD: u64 = 256;

/// The block groups with backup superblocks of ext (`sparse_super`: 1 and the powers of 3, 5 and 7), without the higher
/// ones.
const EXT_GROUPS: [u64; 8] = [1, 3, 5, 7, 9, 25, 27, 49];

/// Lengths of the block groups of ext by block size: 1, 2 and 4 KiB. With blocks of 1 KiB, all groups begin one block
/// later, which is in the same sample.
const EXT_GROUP_LENGTHS: [u64; 3] = [8 << 20, 32 << 20, 128 << 20];

const BTRFS_MIRRORS: [u64; 2] = [64 << 20, 256 << 30];

/// The ranges read to prove that a disk is blank: start and length of each, in order. They may overlap.
pub(super) fn ranges(size: Bytes) -> Vec<(u64, u64)> {
    let tail = size.0.saturating_sub(TAIL);
    let samples = samples(size).into_iter().map(|start| (start, SAMPLE));
    [(0, HEAD.min(size.0))]
        .into_iter()
        .chain(samples)
        .chain([(tail, size.0 - tail)])
        .collect()
}

pub(super) fn chunks(size: Bytes) -> impl Iterator<Item = (u64, u64)> {
    ranges(size).into_iter().flat_map(|(start, length)| {
        let offsets = (0..length.div_ceil(CHUNK)).map(|chunk| chunk * CHUNK);
        offsets.map(move |offset| (start + offset, CHUNK.min(length - offset)))
    })
}

pub(super) fn read_at(file: &File, start: u64, length: u64, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.resize(usize::try_from(length).map_err(io::Error::other)?, 0);
    file.read_exact_at(buffer, start)
}

/// End of the last superblock from the start of the device: that of btrfs, of 4 KiB at 64 KiB.
pub(super) const SUPERBLOCKS: u64 = 68 << 10;

/// Whether the start of the device, where superblocks are, is zero.
pub(super) fn has_blank_start(device: &File, size: Bytes) -> io::Result<bool> {
    Ok(first_nonzero(&superblock_area(device, size)?, 0)?.is_none())
}

/// The offset of the first nonzero byte; the bytes were read at `start`. Whole blocks are compared: a loop over bytes
/// is a hundred times slower in unoptimized builds.
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

/// The offsets of the samples on a device of this size, in order.
fn samples(size: Bytes) -> Vec<u64> {
    let spread = (0..SPREAD).map(|part| {
        // The product of size and part may overflow.
        let (quotient, rest) = (size.0 / SPREAD, size.0 % SPREAD);
        (quotient * part + rest * part / SPREAD) / SAMPLE * SAMPLE
    });
    let ext = EXT_GROUP_LENGTHS
        .iter()
        .flat_map(|length| EXT_GROUPS.map(|group| group * length));
    let mut samples: Vec<u64> = spread
        .chain(ext)
        .chain(BTRFS_MIRRORS)
        .filter(|start| start + SAMPLE <= size.0)
        .collect();
    samples.sort_unstable();
    samples.dedup();
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn samples_neither_overlap_nor_exceed_the_device() {
        for size in [
            0,
            1,
            SAMPLE - 1,
            SAMPLE,
            SAMPLE + 1,
            (1 << 20) - 512,
            320 << 20,
            20 * GIB,
            (64 << 40) + 512,
            u64::MAX / 512 * 512,
        ] {
            let places = samples(Bytes(size));
            assert!(places.is_sorted_by(|a, b| b - a >= SAMPLE), "{size}");
            assert!(places.iter().all(|place| size - place >= SAMPLE), "{size}");
            assert_eq!(places.is_empty(), size < SAMPLE, "{size}");
            assert!(places.len() <= 282, "{size}: {}", places.len());
        }
    }

    #[test]
    fn gaps_are_at_most_a_256th_of_the_disk() {
        for size in [320 << 20, 20 * GIB, 64 << 40] {
            let places = samples(Bytes(size));
            let most = size / SPREAD + SAMPLE;
            assert!(places.is_sorted_by(|a, b| b - a <= most), "{size}");
            assert!(size - places.last().unwrap() <= most, "{size}");
        }
    }

    #[test]
    fn the_backup_superblocks_of_known_filesystems_are_sampled() {
        let places = samples(Bytes(500 * GIB));
        let is_read = |at: u64| places.contains(&(at / SAMPLE * SAMPLE));
        for (at, what) in [
            (8193 << 10, "ext, 1 KiB blocks"),
            (16384 << 11, "ext, 2 KiB blocks"),
            (32768 << 12, "ext, 4 KiB blocks"),
            (98304 << 12, "ext, 4 KiB blocks"),
            (64 << 20, "btrfs"),
            (256 * GIB, "btrfs"),
            (125 * GIB, "xfs"),
            (375 * GIB, "xfs"),
        ] {
            assert!(is_read(at), "{what} at {at}");
        }
    }
}
