//! Reads from the device itself instead of the page cache, so that the read blocks if the device does not respond.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;

/// A multiple of the logical block size of disks. Both the buffer and the length must be aligned to it.
const BLOCK: usize = 4096;

/// Reads the first block of a device.
pub(super) fn read_first_block(device: &Path) -> io::Result<()> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_DIRECT.bits())
        .open(device)?;
    let mut buffer = vec![0; 2 * BLOCK];
    let start = buffer.as_ptr().align_offset(BLOCK);
    let block = buffer
        .get_mut(start..)
        .and_then(|rest| rest.get_mut(..BLOCK));
    let block = block.ok_or(io::ErrorKind::InvalidInput)?;
    file.read_exact_at(block, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aligned_block_is_read() {
        // tmpfs does not support direct reads in Linux before 6.6.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let file = dir.path().join("image");
        std::fs::write(&file, [1; BLOCK]).unwrap();
        read_first_block(&file).unwrap();
        std::fs::write(&file, [1; 512]).unwrap();
        let error = read_first_block(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
