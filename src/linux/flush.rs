//! Flushes devices, and checks whether the kernel still uses them. A filesystem can stay active after its last unmount:
//! in another mount namespace, or while a process holds it open. A device is free if it can be opened exclusively
//! (`O_EXCL`), as mkfs and mount do.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::device::{Device, DeviceNumber};
use super::error::{IoResult, Result, errno};
use super::exclusive;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushOutcome {
    /// All data is on the disk, and the kernel does not use the device.
    Flushed,
    /// A filesystem or another device uses the device or one of its partitions.
    InUse,
    Removed,
}

const FLAGS: OFlag = OFlag::O_NOFOLLOW.union(OFlag::O_CLOEXEC).union(OFlag::O_NONBLOCK);

/// Opens the device exclusively, and flushes its dirty pages.
pub(super) fn flush_if_free(device: &Device) -> Result<FlushOutcome> {
    let opened = exclusive::open(OpenOptions::new().read(true), FLAGS, &device.path);
    if opened.as_ref().err().and_then(errno) == Some(Errno::EBUSY) {
        return Ok(FlushOutcome::InUse);
    }
    outcome(device, opened.and_then(|file| sync(device, &file)))
}

/// Flushes the dirty pages of the device, even if it is in use.
pub(super) fn flush(device: &Device) -> Result<FlushOutcome> {
    let mut options = OpenOptions::new();
    let opened = options.read(true).custom_flags(FLAGS.bits());
    let opened = opened.open(&device.path);
    outcome(device, opened.and_then(|file| sync(device, &file)))
}

fn sync(device: &Device, file: &File) -> io::Result<FlushOutcome> {
    if DeviceNumber::of_node(&file.metadata()?) != Some(device.number) {
        // The node belongs to another device: this one was removed.
        return Ok(FlushOutcome::Removed);
    }
    file.sync_all().map(|()| FlushOutcome::Flushed)
}

fn outcome(device: &Device, flushed: io::Result<FlushOutcome>) -> Result<FlushOutcome> {
    use Errno::{ENODEV, ENOENT, ENOMEDIUM, ENXIO};
    match flushed.as_ref().err().and_then(errno) {
        Some(ENOENT | ENXIO | ENODEV | ENOMEDIUM) => Ok(FlushOutcome::Removed),
        _ => flushed.io_context("flush", &device.path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fake::disk;

    #[test]
    fn a_missing_device_or_another_file_type_counts_as_removed() {
        let mut device = disk("vdb", 16, "bp1");
        device.path = "/nowhere/vdb".into();
        assert_eq!(flush_if_free(&device).unwrap(), FlushOutcome::Removed);
        let file = tempfile::NamedTempFile::new().unwrap();
        device.path = file.path().to_owned();
        assert_eq!(flush(&device).unwrap(), FlushOutcome::Removed);
    }
}
