//! The number of an attachment of a block device to the machine.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Serialize};

use super::error::{IoResult, Result};
use super::sysfs::{is_virtual, parsed_attribute};

/// A number that the kernel never gives to another device before the next reboot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceSequence {
    /// The inode number of the device's directory in sysfs, for older kernels. Since Linux 5.5 it is the 64-bit ID of
    /// the directory, which is assigned cyclically with a generation in the upper half (`kernfs_new_node` in
    /// fs/kernfs/dir.c), and the directory is created with the device. Loop devices keep theirs when the backing file
    /// changes, so it identifies only devices of which the kernel creates one per disk.
    SysfsInode(u64),
    /// The `diskseq` attribute (Linux 5.15). Recorded as a bare number, as in records of earlier versions.
    #[serde(untagged)]
    Diskseq(u64),
}

impl DeviceSequence {
    /// Reads the number of the device with this name and directory in sysfs; `None` for a virtual device on a kernel
    /// without `diskseq`, or if the device was removed.
    pub(super) fn read(dir: &Path, name: &str) -> Result<Option<Self>> {
        if let Some(diskseq) = parsed_attribute(&dir.join("diskseq"))? {
            return Ok(Some(Self::Diskseq(diskseq)));
        }
        if is_virtual(name) {
            return Ok(None);
        }
        let metadata = fs::metadata(dir).none_if(&[io::ErrorKind::NotFound]);
        let metadata = metadata.io_context("stat", dir)?;
        Ok(metadata.map(|metadata| Self::SysfsInode(metadata.ino())))
    }
}
