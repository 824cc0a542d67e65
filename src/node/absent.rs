//! What a node tells of a disk that does not come: what is there instead, and what to do.

use super::observe::{CallContext, quick};
use super::request::Volume;
use super::{Node, Result};
use crate::host::{Device, Entry, Link};

/// How many devices are named; the others are counted.
const NAMED: usize = 8;

/// The node's surroundings when the wait is over.
#[derive(Debug, Default)]
pub(super) struct Surroundings {
    /// Every block device.
    pub(super) devices: Vec<Device>,
    /// Whether the devices that could be disks have nodes.
    pub(super) has_nodes: bool,
    /// udev's links of disks that lead nowhere.
    pub(super) dangling: Vec<Link>,
}

impl Surroundings {
    /// The devices that could be disks: first those that could be this one.
    pub(super) fn disks(&self) -> Vec<&Device> {
        let mut disks: Vec<&Device> = self
            .devices
            .iter()
            .filter(|device| !device.is_made_up() || device.backing_file.is_some())
            .collect();
        disks.sort_by_key(|device| !is_bare(device));
        disks
    }

    /// In words, after what the last look has noted.
    pub(super) fn tell(&self, volume: &Volume, notes: Vec<String>) -> String {
        let mut told = notes;
        let disks = self.disks();
        if self.devices.is_empty() {
            told.push("sysfs shows no block device at all: is /sys that of the host?".to_owned());
        } else if disks.is_empty() {
            let count = self.devices.len();
            told.push(format!("none of the {count} block devices is a disk"));
        } else {
            let named = disks.iter().take(NAMED).copied().map(of);
            let more = disks.len().saturating_sub(NAMED);
            let more = (more > 0).then(|| format!("{more} more"));
            let list: Vec<String> = named.chain(more).collect();
            told.push(format!("there are {}", list.join(", ")));
            if !self.has_nodes {
                told.push("none of them has its node: is /dev that of the host?".to_owned());
            }
        }
        if let Some(bare) = disks.first().filter(|device| is_bare(device)) {
            told.push(format!(
                "a disk without serial is taken only at a person's word: if it is {path}, say \
                 `diskplugin map {disk} {path}` on this node",
                path = bare.path.display(),
                disk = volume.id,
            ));
        }
        if let Some(link) = self.dangling.first() {
            let count = self.dangling.len();
            let such = link.path.display();
            told.push(format!(
                "links of disks that lead nowhere: {count}, such as {such}"
            ));
        }
        told.join("; ")
    }
}

impl Node {
    /// What is there when the wait for a device is over.
    pub(super) async fn surroundings(&self, at: CallContext<'_>) -> Result<Surroundings> {
        let devices = self.host.devices(quick()).await.map_err(at.failed())?;
        let dangling = self.host.dangling_links(quick()).await;
        let mut around = Surroundings {
            devices,
            has_nodes: false,
            dangling: dangling.map_err(at.failed())?,
        };
        let mut has_nodes = false;
        for device in around.disks().into_iter().take(NAMED) {
            let entry = self.host.entry(quick(), &device.path).await;
            has_nodes |= entry.map_err(at.failed())? == Entry::Block(device.number);
        }
        around.has_nodes = has_nodes;
        Ok(around)
    }
}

/// Whether nothing tells what the device is, and nobody uses it.
fn is_bare(device: &Device) -> bool {
    device.serial.is_none()
        && device.backing_file.is_none()
        && !device.is_made_up()
        && device.partitions.is_empty()
        && device.holders.is_empty()
}

fn of(device: &Device) -> String {
    let (identity, size) = (device.identity(), device.size);
    format!("{device} with {identity} and {size}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::disk;

    fn volume() -> Volume {
        Volume::new("d-bp1".parse().unwrap(), None)
    }

    fn tell(devices: Vec<Device>) -> String {
        let around = Surroundings {
            devices,
            has_nodes: true,
            dangling: Vec::new(),
        };
        around.tell(&volume(), Vec::new())
    }

    fn bare(name: &str, minor: u64) -> Device {
        Device {
            serial: None,
            ..disk(name, minor, "x")
        }
    }

    #[test]
    fn the_disks_that_are_there_are_named_with_serial_and_size() {
        assert_eq!(
            tell(vec![disk("vda", 0, "system"), bare("loop0", 1)]),
            "there are /dev/vda (254:0) with serial system and 1073741824 bytes"
        );
    }

    #[test]
    fn a_machine_without_any_device_is_asked_for_its_sys() {
        assert_eq!(
            tell(Vec::new()),
            "sysfs shows no block device at all: is /sys that of the host?"
        );
        assert_eq!(
            tell(vec![bare("loop0", 1), bare("zram0", 2)]),
            "none of the 2 block devices is a disk"
        );
    }

    #[test]
    fn a_disk_without_serial_comes_first_and_with_the_command_that_marks_it() {
        let told = tell(vec![disk("vda", 0, "system"), bare("vdb", 16)]);
        assert_eq!(
            told,
            "there are /dev/vdb (254:16) with no serial and 1073741824 bytes, /dev/vda (254:0) with serial system \
             and 1073741824 bytes; a disk without serial is taken only at a person's word: if it is /dev/vdb, say \
             `diskplugin map d-bp1 /dev/vdb` on this node"
        );
        let system = Device {
            partitions: vec!["vda1".to_owned()],
            ..bare("vda", 0)
        };
        assert!(!tell(vec![system]).contains("diskplugin map"));
    }

    #[test]
    fn of_a_hundred_disks_few_are_named_and_all_are_counted() {
        let disks = (0..100).map(|index| disk(&format!("vd{index}"), index, "bp2"));
        let told = tell(disks.collect());
        assert!(told.ends_with(", 92 more") && told.len() < 500, "{told}");
    }

    #[test]
    fn missing_nodes_and_links_that_lead_nowhere_are_told() {
        let around = Surroundings {
            devices: vec![disk("vda", 0, "system")],
            has_nodes: false,
            dangling: vec![Link {
                path: "/dev/disk/by-id/virtio-bp7".into(),
                target: "../../vdz".into(),
            }],
        };
        assert_eq!(
            around.tell(&volume(), vec!["a note".to_owned()]),
            "a note; there are /dev/vda (254:0) with serial system and 1073741824 bytes; none of them has its node: \
             is /dev that of the host?; links of disks that lead nowhere: 1, such as \
             /dev/disk/by-id/virtio-bp7"
        );
    }
}
