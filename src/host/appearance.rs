//! One appearance of one device on one machine: from its arrival until it leaves, or the machine is
//! started anew. What was true of a device within one appearance of it, nobody else can have changed
//! by attaching it elsewhere.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::device::Device;

/// An appearance. Two that are equal are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Appearance {
    /// The kernel's id of the machine's current start (`/proc/sys/kernel/random/boot_id`).
    boot: String,
    /// The kernel's name of the device.
    name: String,
    /// `major:minor`.
    number: String,
    /// Counts appearances of disks (`diskseq` in sysfs).
    sequence: u64,
}

impl Appearance {
    /// The device's appearance; none on kernels before 5.15, which do not count them.
    #[must_use]
    pub fn of(boot: &str, device: &Device) -> Option<Self> {
        Some(Self {
            boot: boot.to_owned(),
            name: device.name.clone(),
            number: device.number.to_string(),
            sequence: device.sequence?,
        })
    }

    /// The kernel's name of the device, such as `vdb`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Appearance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, number, sequence) = (&self.name, &self.number, self.sequence);
        write!(f, "/dev/{name} ({number}, appearance {sequence})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::disk;

    #[test]
    fn another_start_another_number_or_another_arrival_is_another_appearance() {
        let device = disk("vdb", 16, "bp1");
        let first = Appearance::of("boot-1", &device).unwrap();
        assert_eq!(Appearance::of("boot-1", &device), Some(first.clone()));
        assert_ne!(Appearance::of("boot-2", &device), Some(first.clone()));
        let again = Device {
            sequence: Some(99),
            ..device.clone()
        };
        assert_ne!(Appearance::of("boot-1", &again), Some(first));
        let old_kernel = Device {
            sequence: None,
            ..device
        };
        assert_eq!(Appearance::of("boot-1", &old_kernel), None);
    }
}
