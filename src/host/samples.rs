//! Where to look on a device besides its ends: a wiped head leaves a filesystem's spare superblocks
//! and its files, and a format that nobody knows may begin anywhere. Reading all of a disk would
//! take minutes; a fixed number of places takes one read each.

use crate::model::Bytes;

/// Length of what is read at each place; places are whole multiples of it.
pub(super) const SAMPLE: u64 = 4 << 10;

/// Number of places that are spread evenly. It is a multiple of 4: xfs cuts most disks into four
/// allocation groups, each of which begins with a superblock.
const SPREAD: u64 = 256;

/// The block groups in which ext keeps its spare superblocks (`sparse_super`: 1 and the powers of 3,
/// 5 and 7), as many as are worth a read.
const EXT_GROUPS: [u64; 8] = [1, 3, 5, 7, 9, 25, 27, 49];

/// Lengths of ext's block groups by block size: 1, 2 and 4 KiB. With 1 KiB blocks all groups lie one
/// block further back, which is in the same sample.
const EXT_GROUP_LENGTHS: [u64; 3] = [8 << 20, 32 << 20, 128 << 20];

/// The spare superblocks of btrfs.
const BTRFS_MIRRORS: [u64; 2] = [64 << 20, 256 << 30];

/// Where to read [`SAMPLE`] bytes each on a device of this size: in order, each once, none reaching beyond the end.
pub(super) fn places(size: Bytes) -> Vec<u64> {
    let spread = (0..SPREAD).map(|part| {
        // Whole samples first: the size times the part may not fit.
        let (quotient, rest) = (size.0 / SPREAD, size.0 % SPREAD);
        (quotient * part + rest * part / SPREAD) / SAMPLE * SAMPLE
    });
    let ext = EXT_GROUP_LENGTHS
        .iter()
        .flat_map(|length| EXT_GROUPS.map(|group| group * length));
    let mut places: Vec<u64> = spread
        .chain(ext)
        .chain(BTRFS_MIRRORS)
        .filter(|place| place + SAMPLE <= size.0)
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn no_place_overlaps_another_or_reaches_beyond_the_end() {
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
            let places = places(Bytes(size));
            assert!(places.is_sorted_by(|a, b| b - a >= SAMPLE), "{size}");
            assert!(places.iter().all(|place| size - place >= SAMPLE), "{size}");
            assert_eq!(places.is_empty(), size < SAMPLE, "{size}");
            assert!(places.len() <= 282, "{size}: {}", places.len());
        }
    }

    #[test]
    fn no_stretch_is_longer_than_a_256th_of_the_disk() {
        for size in [320 << 20, 20 * GIB, 64 << 40] {
            let places = places(Bytes(size));
            let most = size / SPREAD + SAMPLE;
            assert!(places.is_sorted_by(|a, b| b - a <= most), "{size}");
            assert!(size - places.last().unwrap() <= most, "{size}");
        }
    }

    #[test]
    fn the_spare_superblocks_of_known_filesystems_are_among_them() {
        let places = places(Bytes(500 * GIB));
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
