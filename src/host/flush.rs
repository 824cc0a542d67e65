//! Flushes devices, and checks whether the kernel still uses them. A filesystem can stay active after its last unmount: in
//! another mount namespace, or while a process holds it open. A device is free if it can be opened exclusively (`O_EXCL`),
//! as mkfs and mount do.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::fcntl::OFlag;

use super::device::{Device, DeviceNumber};
use super::error::{HostError, IoResult, Result};
use super::exclusive::ExclusiveFile;

/// The result of flushing a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushOutcome {
    /// All data is on the disk, and the kernel does not use the device.
    Flushed,
    /// A filesystem or another device uses the device or one of its partitions.
    InUse,
    /// The device was removed.
    Removed,
}

const STEP: &str = "flush";

const FLAGS: OFlag = OFlag::O_NOFOLLOW
    .union(OFlag::O_CLOEXEC)
    .union(OFlag::O_NONBLOCK);

/// Opens the device exclusively, and flushes its dirty pages.
pub(super) fn flush_if_free(device: &Device) -> Result<FlushOutcome> {
    match ExclusiveFile::open(OpenOptions::new().read(true), FLAGS, &device.path) {
        Ok(file) => sync(device, &file),
        Err(error) if has_errno(&error, Errno::EBUSY) => Ok(FlushOutcome::InUse),
        Err(error) => removed_or_error(device, error),
    }
}

/// Flushes the dirty pages of the device, even if it is in use.
pub(super) fn flush(device: &Device) -> Result<FlushOutcome> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(FLAGS.bits());
    match options.open(&device.path) {
        Ok(file) => sync(device, &file),
        Err(error) => removed_or_error(device, error),
    }
}

fn removed_or_error(device: &Device, error: io::Error) -> Result<FlushOutcome> {
    if is_removed(&error) {
        return Ok(FlushOutcome::Removed);
    }
    Err(HostError::io(STEP, &device.path, error))
}

fn sync(device: &Device, file: &File) -> Result<FlushOutcome> {
    let metadata = file.metadata().io_context(STEP, &device.path)?;
    if DeviceNumber::of_node(&metadata) != Some(device.number) {
        // The node belongs to another device: this one was removed.
        return Ok(FlushOutcome::Removed);
    }
    match file.sync_all() {
        Ok(()) => Ok(FlushOutcome::Flushed),
        Err(error) => removed_or_error(device, error),
    }
}

fn has_errno(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error().map(Errno::from_raw) == Some(errno)
}

fn is_removed(error: &io::Error) -> bool {
    [Errno::ENOENT, Errno::ENXIO, Errno::ENODEV, Errno::ENOMEDIUM]
        .into_iter()
        .any(|errno| has_errno(error, errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::disk;

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
