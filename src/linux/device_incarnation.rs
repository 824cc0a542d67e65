//! An incarnation of a block device: from its attachment to the machine until its removal or a reboot. Within one
//! incarnation the disk cannot have been attached to, and changed by, another machine.

use serde::{Deserialize, Serialize};

use super::device::Device;
use super::device_sequence::DeviceSequence;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceIncarnation {
    /// The boot ID (`/proc/sys/kernel/random/boot_id`).
    boot: String,
    name: String,
    /// `major:minor`.
    number: String,
    sequence: DeviceSequence,
}

impl DeviceIncarnation {
    /// The incarnation of the device; `None` for a virtual device on a kernel without `diskseq`.
    #[must_use]
    pub fn new(boot: &str, device: &Device) -> Option<Self> {
        Some(Self {
            boot: boot.to_owned(),
            name: device.name.clone(),
            number: device.number.to_string(),
            sequence: device.sequence?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::linux::fake::disk;

    #[test]
    fn a_different_boot_or_sequence_is_a_different_incarnation() {
        let device = disk("vdb", 16, "bp1");
        let first = DeviceIncarnation::new("boot-1", &device).unwrap();
        assert_eq!(DeviceIncarnation::new("boot-1", &device), Some(first.clone()));
        assert_ne!(DeviceIncarnation::new("boot-2", &device), Some(first.clone()));
        for sequence in [DeviceSequence::Diskseq(99), DeviceSequence::SysfsInode(16)] {
            let again = Device {
                sequence: Some(sequence),
                ..device.clone()
            };
            let again = DeviceIncarnation::new("boot-1", &again);
            assert_ne!(again, Some(first.clone()));
        }
        let unknown = Device {
            sequence: None,
            ..device
        };
        assert_eq!(DeviceIncarnation::new("boot-1", &unknown), None);
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
