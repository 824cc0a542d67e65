//! Wipes a disk on which a mkfs of this driver was interrupted.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use nix::fcntl::OFlag;

use super::device::{Device, check_number};
use super::error::{IoResult, Result};
use super::exclusive;
use super::samples::{chunks, read_at};
use crate::model::Bytes;

/// Zeroes the nonzero bytes in the ranges that are read to prove that a disk is blank. The device is opened
/// exclusively.
pub(super) fn wipe(device: &Device) -> Result<()> {
    check_number(device)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    exclusive::open(&mut options, OFlag::empty(), &device.path)
        .and_then(|file| zero(&file, device.size))
        .io_context("wipe", &device.path)
}

fn zero(file: &File, size: Bytes) -> io::Result<()> {
    let mut buffer = Vec::new();
    for (start, length) in chunks(size) {
        read_at(file, start, length, &mut buffer)?;
        if buffer.iter().any(|&byte| byte != 0) {
            buffer.fill(0);
            file.write_all_at(&buffer, start)?;
        }
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::content::scan;
    use crate::linux::samples::ranges;

    #[test]
    fn only_the_ranges_of_the_blank_check_are_zeroed() {
        let size = 16 << 20;
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all_at(&vec![7; size], 0).unwrap();
        let size = Bytes(size.try_into().unwrap());
        zero(file.as_file(), size).unwrap();
        assert_eq!(scan(file.path(), size).unwrap().first_data, None);
        let left = std::fs::read(file.path()).unwrap();
        let zeroed: u64 = ranges(size).iter().map(|(_, length)| length).sum();
        let zeroes = left.iter().filter(|&&byte| byte == 0).count();
        assert!(zeroes > 0 && u64::try_from(zeroes).unwrap() <= zeroed);
        assert!(zeroes < left.len());
    }
}
