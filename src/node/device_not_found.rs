//! The error for a disk whose device does not appear: existing devices, and advice.

use super::Result;
use super::observe::{CallContext, quick};
use crate::linux::{Device, Entry, Link};

/// Maximum number of devices in the message; the others are counted.
const MAX_LISTED: usize = 8;

/// The block devices of the node at the end of the wait.
#[derive(Debug, Default)]
pub(super) struct ExistingDevices {
    pub(super) devices: Vec<Device>,
    pub(super) has_nodes: bool,
    pub(super) dangling: Vec<Link>,
}

impl ExistingDevices {
    pub(super) async fn list(call: CallContext<'_>) -> Result<Self> {
        let mut existing = Self {
            devices: call.wrap(call.host.devices(quick())).await?,
            has_nodes: false,
            dangling: call.wrap(call.host.dangling_links(quick())).await?,
        };
        let mut has_nodes = false;
        for device in existing.disks().into_iter().take(MAX_LISTED) {
            let entry = call.wrap(call.host.entry(quick(), &device.path)).await?;
            has_nodes |= entry == Entry::BlockDevice(device.number);
        }
        existing.has_nodes = has_nodes;
        Ok(existing)
    }

    /// The devices that can be disks of the cloud; unidentified, unused ones first.
    pub(super) fn disks(&self) -> Vec<&Device> {
        let mut disks: Vec<&Device> = self
            .devices
            .iter()
            .filter(|device| !device.is_virtual() || device.backing_file.is_some())
            .collect();
        disks.sort_by_key(|device| !is_unidentified(device));
        disks
    }

    pub(super) fn describe(&self, notes: Vec<String>) -> String {
        let mut parts = notes;
        let disks = self.disks();
        if self.devices.is_empty() {
            parts.push("sysfs lists no block devices: check that /sys is the host's".to_owned());
        } else if disks.is_empty() {
            let count = self.devices.len();
            parts.push(format!("none of the {count} block devices is a cloud disk"));
        } else {
            let listed = disks.iter().take(MAX_LISTED).copied().map(describe_device);
            let more = disks.len().saturating_sub(MAX_LISTED);
            let more = (more > 0).then(|| format!("{more} more"));
            let list: Vec<String> = listed.chain(more).collect();
            parts.push(format!("existing devices: {}", list.join(", ")));
            if !self.has_nodes {
                parts.push("none of them has a device node: check that /dev is the host's".to_owned());
            }
        }
        if let Some(unidentified) = disks.first().filter(|device| is_unidentified(device)) {
            parts.push(format!(
                "{} has no serial: if it is this disk, which was then created before June 2020, take a snapshot of the disk, \
                 create a new disk from the snapshot, and use the new disk",
                unidentified.path.display()
            ));
        }
        if let Some(link) = self.dangling.first() {
            let count = self.dangling.len();
            let example = link.path.display();
            parts.push(format!("dangling links of disks: {count}, such as {example}"));
        }
        parts.join("; ")
    }
}

fn is_unidentified(device: &Device) -> bool {
    device.serial.is_none()
        && device.backing_file.is_none()
        && !device.is_virtual()
        && device.partitions.is_empty()
        && device.holders.is_empty()
}

fn describe_device(device: &Device) -> String {
    let (identity, size) = (device.identity(), device.size);
    format!("{device} with {identity} and {size}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fake::{disk, partition};

    fn describe_devices(devices: Vec<Device>) -> String {
        let existing = ExistingDevices {
            devices,
            has_nodes: true,
            dangling: Vec::new(),
        };
        existing.describe(Vec::new())
    }

    #[test]
    fn existing_disks_are_listed_with_serial_and_size() {
        assert_eq!(
            describe_devices(vec![disk("vda", 0, "system"), disk("loop0", 1, "")]),
            "existing devices: /dev/vda (254:0) with serial system and 1073741824 bytes"
        );
    }

    #[test]
    fn without_devices_the_message_names_sysfs() {
        assert_eq!(
            describe_devices(Vec::new()),
            "sysfs lists no block devices: check that /sys is the host's"
        );
        assert_eq!(
            describe_devices(vec![disk("loop0", 1, ""), disk("zram0", 2, "")]),
            "none of the 2 block devices is a cloud disk"
        );
    }

    #[test]
    fn a_disk_without_serial_is_listed_first_with_advice() {
        let message = describe_devices(vec![disk("vda", 0, "system"), disk("vdb", 16, "")]);
        assert_eq!(
            message,
            "existing devices: /dev/vdb (254:16) with no serial and 1073741824 bytes, /dev/vda (254:0) with serial system \
             and 1073741824 bytes; /dev/vdb has no serial: if it is this disk, which was then created before June 2020, take \
             a snapshot of the disk, create a new disk from the snapshot, and use the new disk"
        );
        let system = Device {
            partitions: vec![partition(&disk("vda", 0, ""))],
            ..disk("vda", 0, "")
        };
        assert!(!describe_devices(vec![system]).contains("snapshot"));
    }

    #[test]
    fn a_long_list_of_disks_is_truncated() {
        let disks = (0..100).map(|index| disk(&format!("vd{index}"), index, "bp2"));
        let message = describe_devices(disks.collect());
        assert!(message.ends_with(", 92 more") && message.len() < 500, "{message}");
    }

    #[test]
    fn missing_device_nodes_and_dangling_links_are_reported() {
        let existing = ExistingDevices {
            devices: vec![disk("vda", 0, "system")],
            has_nodes: false,
            dangling: vec![Link {
                path: "/dev/disk/by-id/virtio-bp7".into(),
                target: "../../vdz".into(),
            }],
        };
        assert_eq!(
            existing.describe(vec!["a note".to_owned()]),
            "a note; existing devices: /dev/vda (254:0) with serial system and 1073741824 bytes; none of them has a device \
             node: check that /dev is the host's; dangling links of disks: 1, such as \
             /dev/disk/by-id/virtio-bp7"
        );
    }
}
