//! Making a disk blank again whose content is a mkfs of ours that was cut off.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use nix::fcntl::OFlag;

use super::content::{CHUNK, ranges};
use super::device::Device;
use super::error::{IoResult, Result};
use super::exclusive::ExclusiveFile;
use super::mount::check_number;
use crate::model::Bytes;

/// Zeroes whatever is not zero where the proof of blankness looks, and nothing else. The device is opened for exclusive use.
pub(super) fn wipe(device: &Device) -> Result<()> {
    check_number(device)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    ExclusiveFile::open(&mut options, OFlag::empty(), &device.path)
        .and_then(|file| zero(&file, device.size))
        .io_context("wipe", &device.path)
}

fn zero(file: &File, size: Bytes) -> io::Result<()> {
    let mut bytes = Vec::new();
    for (start, length) in ranges(size) {
        let mut at = start;
        while at < start + length {
            let piece = CHUNK.min(start + length - at);
            bytes.resize(usize::try_from(piece).map_err(io::Error::other)?, 0);
            file.read_exact_at(&mut bytes, at)?;
            if bytes.iter().any(|&byte| byte != 0) {
                bytes.fill(0);
                file.write_all_at(&bytes, at)?;
            }
            at += piece;
        }
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::content::scan;

    #[test]
    fn what_the_proof_looks_at_is_zero_afterwards_and_the_rest_is_untouched() {
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
