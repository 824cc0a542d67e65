//! What the kernel still has to do with a device that was unmounted. A filesystem may live on after
//! its last mount here: in another mount namespace, or as long as a process holds it open. The device is
//! free when it can be claimed exclusively, as mkfs and mount claim it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::{major, minor};

use super::device::{Device, Number};
use super::error::{HostError, Result};

/// What became of flushing a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flushed {
    /// All is on the disk, and nothing in the kernel uses the device.
    Free,
    /// A filesystem, a partition of it or another device uses it.
    InUse,
    /// The device is gone; there is nothing to flush to.
    Gone,
}

/// Claims the device for a moment, and writes what the kernel holds for it.
pub(super) fn flush_if_free(device: &Device) -> Result<Flushed> {
    flush_opened(device, OFlag::O_EXCL)
}

/// Writes what the kernel holds for the device, whoever uses it.
pub(super) fn flush(device: &Device) -> Result<Flushed> {
    flush_opened(device, OFlag::empty())
}

fn flush_opened(device: &Device, flag: OFlag) -> Result<Flushed> {
    const STEP: &str = "flush";
    let flags = flag | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(&device.path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if is(&error, Errno::EBUSY) => return Ok(Flushed::InUse),
        Err(error) if is_gone(&error) => return Ok(Flushed::Gone),
        Err(error) => return Err(HostError::io(STEP, &device.path, error)),
    };
    match number_of(&file) {
        Ok(Some(number)) if number == device.number => {}
        // The name is another device's by now, or nobody's: what was looked for is gone.
        Ok(_) => return Ok(Flushed::Gone),
        Err(error) => return Err(HostError::io(STEP, &device.path, error)),
    }
    match file.sync_all() {
        Ok(()) => Ok(Flushed::Free),
        Err(error) if is_gone(&error) => Ok(Flushed::Gone),
        Err(error) => Err(HostError::io(STEP, &device.path, error)),
    }
}

fn number_of(file: &File) -> io::Result<Option<Number>> {
    let found = file.metadata()?;
    let rdev = found.rdev();
    let number = Number {
        major: major(rdev),
        minor: minor(rdev),
    };
    Ok(found.file_type().is_block_device().then_some(number))
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error().map(Errno::from_raw) == Some(errno)
}

fn is_gone(error: &io::Error) -> bool {
    [Errno::ENOENT, Errno::ENXIO, Errno::ENODEV, Errno::ENOMEDIUM]
        .into_iter()
        .any(|errno| is(error, errno))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::disk;

    #[test]
    fn a_device_that_is_not_there_or_is_none_is_gone() {
        let mut device = disk("vdb", 16, "bp1");
        device.path = "/nowhere/vdb".into();
        assert_eq!(flush_if_free(&device).unwrap(), Flushed::Gone);
        let file = tempfile::NamedTempFile::new().unwrap();
        device.path = file.path().to_owned();
        assert_eq!(flush(&device).unwrap(), Flushed::Gone);
    }
}
