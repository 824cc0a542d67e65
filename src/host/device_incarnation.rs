//! An incarnation of a block device: from its attachment to the machine until its removal or a reboot. Within one
//! incarnation the disk cannot have been attached to, and changed by, another machine.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::device::Device;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceIncarnation {
    /// The boot ID (`/proc/sys/kernel/random/boot_id`).
    boot: String,
    name: String,
    /// `major:minor`.
    number: String,
    /// The `diskseq` attribute in sysfs, which is unique for each incarnation of any disk since boot.
    sequence: u64,
}

impl DeviceIncarnation {
    /// The incarnation of the device; `None` on kernels before 5.15, which do not have `diskseq`.
    #[must_use]
    pub fn new(boot: &str, device: &Device) -> Option<Self> {
        Some(Self {
            boot: boot.to_owned(),
            name: device.name.clone(),
            number: device.number.to_string(),
            sequence: device.diskseq?,
        })
    }

    /// The kernel's name of the device, such as `vdb`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for DeviceIncarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, number, sequence) = (&self.name, &self.number, self.sequence);
        write!(f, "/dev/{name} ({number}, diskseq {sequence})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::disk;

    #[test]
    fn a_different_boot_or_diskseq_is_a_different_incarnation() {
        let device = disk("vdb", 16, "bp1");
        let first = DeviceIncarnation::new("boot-1", &device).unwrap();
        assert_eq!(
            DeviceIncarnation::new("boot-1", &device),
            Some(first.clone())
        );
        assert_ne!(
            DeviceIncarnation::new("boot-2", &device),
            Some(first.clone())
        );
        let again = Device {
            diskseq: Some(99),
            ..device.clone()
        };
        assert_ne!(DeviceIncarnation::new("boot-1", &again), Some(first));
        let old_kernel = Device {
            diskseq: None,
            ..device
        };
        assert_eq!(DeviceIncarnation::new("boot-1", &old_kernel), None);
    }
}
