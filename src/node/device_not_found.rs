//! The error for a disk whose device does not appear: existing devices, and advice.

use crate::linux::Device;

/// Maximum number of devices in the message; the others are counted.
const MAX_LISTED: usize = 8;

/// Describes the block devices of the node at the end of the wait.
pub(super) fn describe(devices: &[Device], notes: Vec<String>) -> String {
    let mut parts = notes;
    let can_be_disk = |device: &&Device| !device.is_virtual() || device.backing_file.is_some();
    let mut disks: Vec<&Device> = devices.iter().filter(can_be_disk).collect();
    disks.sort_by_key(|device| !is_unidentified(device));
    if devices.is_empty() {
        parts.push("sysfs lists no block devices: check that /sys is the host's".to_owned());
    } else if disks.is_empty() {
        let count = devices.len();
        parts.push(format!("none of the {count} block devices is a cloud disk"));
    } else {
        let describe = |device: &&Device| format!("{device} with {} and {}", device.identity(), device.size);
        let listed = disks.iter().take(MAX_LISTED).map(describe);
        let more = disks.len().saturating_sub(MAX_LISTED);
        let more = (more > 0).then(|| format!("{more} more"));
        let list: Vec<String> = listed.chain(more).collect();
        parts.push(format!("existing devices: {}", list.join(", ")));
    }
    if let Some(unidentified) = disks.first().filter(|device| is_unidentified(device)) {
        parts.push(format!(
            "{} has no serial: if it is this disk, which was then created before June 2020, take a snapshot of the disk, \
             create a new disk from the snapshot, and use the new disk",
            unidentified.path.display()
        ));
    }
    parts.join("; ")
}

fn is_unidentified(device: &Device) -> bool {
    device.serial.is_none()
        && device.backing_file.is_none()
        && !device.is_virtual()
        && device.partitions.is_empty()
        && device.holders.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fake::{disk, partition};

    #[test]
    fn the_message_lists_the_disks_or_names_what_is_missing() {
        for (devices, notes, expected) in [
            (
                vec![disk("vda", 0, "system"), disk("loop0", 1, "")],
                vec!["a note".to_owned()],
                "a note; existing devices: /dev/vda (254:0) with serial system and 1073741824 bytes",
            ),
            (
                Vec::new(),
                Vec::new(),
                "sysfs lists no block devices: check that /sys is the host's",
            ),
            (
                vec![disk("loop0", 1, ""), disk("zram0", 2, "")],
                Vec::new(),
                "none of the 2 block devices is a cloud disk",
            ),
            (
                vec![disk("vda", 0, "system"), disk("vdb", 16, "")],
                Vec::new(),
                "existing devices: /dev/vdb (254:16) with no serial and 1073741824 bytes, /dev/vda (254:0) with serial \
                 system and 1073741824 bytes; /dev/vdb has no serial: if it is this disk, which was then created before \
                 June 2020, take a snapshot of the disk, create a new disk from the snapshot, and use the new disk",
            ),
        ] {
            assert_eq!(describe(&devices, notes), expected);
        }
    }

    #[test]
    fn a_partitioned_disk_without_serial_is_not_taken_for_an_old_disk() {
        let system = Device {
            partitions: vec![partition(&disk("vda", 0, ""))],
            ..disk("vda", 0, "")
        };
        assert!(!describe(&[system], Vec::new()).contains("snapshot"));
    }

    #[test]
    fn a_long_list_of_disks_is_truncated() {
        let disks: Vec<_> = (0..100)
            .map(|index| disk(&format!("vd{index}"), index, "bp2"))
            .collect();
        let message = describe(&disks, Vec::new());
        assert!(message.ends_with(", 92 more") && message.len() < 500, "{message}");
    }
}
