//! Identifies an attachment of a block device to the machine.

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

/// An incarnation of a block device: from its attachment to the machine until its removal or a reboot. Within one
/// incarnation the disk cannot have been attached to, and changed by, another machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceIncarnation {
    /// The boot ID (`/proc/sys/kernel/random/boot_id`).
    pub(super) boot: String,
    pub(super) name: String,
    /// `major:minor`.
    pub(super) number: String,
    pub(super) sequence: DeviceSequence,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::Device;
    use crate::linux::fake::disk;

    #[test]
    fn a_different_boot_or_sequence_is_a_different_incarnation() {
        let device = disk("vdb", 16, "bp1");
        let first = device.incarnation("boot-1").unwrap();
        assert_eq!(device.incarnation("boot-1"), Some(first.clone()));
        assert_ne!(device.incarnation("boot-2"), Some(first.clone()));
        for sequence in [DeviceSequence::Diskseq(99), DeviceSequence::SysfsInode(16)] {
            let again = Device {
                sequence: Some(sequence),
                ..device.clone()
            };
            assert_ne!(again.incarnation("boot-1"), Some(first.clone()));
        }
        let unknown = Device {
            sequence: None,
            ..device
        };
        assert_eq!(unknown.incarnation("boot-1"), None);
    }

    #[test]
    fn records_of_both_numbers_are_read() {
        for (text, sequence) in [
            ("7", DeviceSequence::Diskseq(7)),
            (r#"{"sysfs_inode":7}"#, DeviceSequence::SysfsInode(7)),
        ] {
            assert_eq!(serde_json::to_string(&sequence).unwrap(), text);
            let read: DeviceSequence = serde_json::from_str(text).unwrap();
            assert_eq!(read, sequence);
        }
    }

    #[test]
    fn without_diskseq_a_disk_has_an_inode_and_a_loop_device_nothing() {
        let sys = tempfile::tempdir().unwrap();
        let of = |name: &str| {
            let dir = sys.path().join(name);
            fs::create_dir_all(&dir).unwrap();
            DeviceSequence::read(&dir, name).unwrap()
        };
        assert!(matches!(of("vdb"), Some(DeviceSequence::SysfsInode(_))));
        assert_ne!(of("vdb"), of("vdc"));
        assert_eq!(of("loop1"), None);
        let removed = DeviceSequence::read(&sys.path().join("vdd"), "vdd");
        assert_eq!(removed.unwrap(), None);
        fs::write(sys.path().join("vdb/diskseq"), "7\n").unwrap();
        assert_eq!(of("vdb"), Some(DeviceSequence::Diskseq(7)));
    }
}
