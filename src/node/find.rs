//! From a disk to its device. A device is accepted by its serial or its recorded mark, never by name
//! or by a link alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use super::observe::{Quick, quick};
use super::request::Volume;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::Device;
use crate::model::Serial;

/// How often to look for a device that is not there yet.
const TICK: Duration = Duration::from_millis(50);

/// What udev calls a disk with a serial, by transport.
const LINK_PREFIXES: [&str; 2] = ["virtio-", "nvme-Alibaba_Cloud_Elastic_Block_Storage_"];

/// A symlink that claims to lead to the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The link.
    pub path: PathBuf,
    /// What it says.
    pub target: PathBuf,
}

/// All symlinks that claim to lead to a disk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// udev's.
    pub by_id: Vec<Link>,
    /// The one in the device directory of the fake cloud.
    pub marked: Option<Link>,
}

/// What a look around gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// The device.
    Here(Device),
    /// Not yet; what there is instead.
    NotYet(String),
}

/// Why no device is accepted, and waiting will not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// Several devices answer to it.
    #[error("serial {serial} is that of more than one device: {devices}")]
    Duplicate {
        /// The serial.
        serial: Serial,
        /// The devices.
        devices: String,
    },
    /// A link leads to another disk.
    #[error("{} leads to {device}, which is another disk ({identity}): the link is stale", link.display())]
    Stale {
        /// The link.
        link: PathBuf,
        /// Where it leads.
        device: String,
        /// What is there.
        identity: String,
    },
}

/// Decides which device the disk is.
///
/// # Errors
/// When more than one device answers to the serial, or a link leads to another disk.
pub fn sight(
    serial: &Serial,
    devices: &[Device],
    links: &Links,
) -> std::result::Result<Sighting, FindError> {
    let mut matching: Vec<&Device> = devices
        .iter()
        .filter(|device| device.serial.as_ref() == Some(serial))
        .collect();
    if let Some(marked) = marked(serial, devices, links)? {
        let file = &marked.backing_file;
        matching.extend(devices.iter().filter(|device| device.backing_file == *file));
    }
    match matching[..] {
        [] => absent(serial, devices, links),
        [device] if device.size.0 == 0 => {
            let text = format!("{device} has it, but no capacity yet");
            Ok(Sighting::NotYet(text))
        }
        [device] => Ok(Sighting::Here(device.clone())),
        _ => Err(FindError::Duplicate {
            serial: serial.clone(),
            devices: list(matching.into_iter()),
        }),
    }
}

/// The device behind the link in the device directory, if it bears the mark.
fn marked<'a>(
    serial: &Serial,
    devices: &'a [Device],
    links: &Links,
) -> std::result::Result<Option<&'a Device>, FindError> {
    let Some(link) = &links.marked else {
        return Ok(None);
    };
    match behind(&link.target, devices) {
        Some(device) if device.mark() == Some(serial.as_str()) => Ok(Some(device)),
        // A loop device that nothing is bound to yet, or not any more.
        Some(device) if device.backing_file.is_none() && device.serial.is_none() => Ok(None),
        Some(device) => Err(stale(link, device)),
        None => Ok(None),
    }
}

/// No device has it. A link that leads to another disk is refused at once: it will not change its
/// mind. One that leads nowhere may be ahead of its device.
fn absent(
    serial: &Serial,
    devices: &[Device],
    links: &Links,
) -> std::result::Result<Sighting, FindError> {
    let mut notes = Vec::new();
    for link in links.by_id.iter().chain(&links.marked) {
        match behind(&link.target, devices) {
            // Were its serial the right one, it would have been found by it.
            Some(device) if device.serial.is_some() => return Err(stale(link, device)),
            Some(device) => notes.push(format!(
                "{} leads to {device}, which nothing proves to be the disk ({})",
                link.path.display(),
                device.identity()
            )),
            None => notes.push(format!(
                "{} leads to {}, which is gone",
                link.path.display(),
                link.target.display()
            )),
        }
    }
    let known: Vec<&Device> = devices
        .iter()
        .filter(|device| device.serial.is_some() || device.backing_file.is_some())
        .collect();
    notes.push(if known.is_empty() {
        format!("none of {} devices has a serial", devices.len())
    } else {
        format!("there are {}", list(known.into_iter()))
    });
    tracing::debug!(disk.serial = %serial, "device is not there yet: {}", notes.join("; "));
    Ok(Sighting::NotYet(notes.join("; ")))
}

/// The device that a link's target names; the link's directory has no say.
fn behind<'a>(target: &Path, devices: &'a [Device]) -> Option<&'a Device> {
    let name = target.file_name()?.to_str()?;
    devices.iter().find(|device| device.name == name)
}

fn stale(link: &Link, device: &Device) -> FindError {
    FindError::Stale {
        link: link.path.clone(),
        device: device.to_string(),
        identity: device.identity(),
    }
}

fn list<'a>(devices: impl Iterator<Item = &'a Device>) -> String {
    devices
        .map(|device| format!("{device} with {}", device.identity()))
        .collect::<Vec<_>>()
        .join(", ")
}

impl Node {
    /// The volume's device, for which it waits until the deadline.
    pub(super) async fn find(&self, volume: &Volume, deadline: Deadline) -> Result<Device> {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let seen = match self.look(volume, "finding its device").await? {
                Sighting::Here(device) => return Ok(device),
                Sighting::NotYet(seen) => seen,
            };
            if deadline.remaining() <= TICK {
                return Err(Error::NoDevice {
                    volume: volume.id.clone(),
                    serial: volume.serial.clone(),
                    seen,
                });
            }
        }
    }

    /// The volume's device, if it is there now.
    pub(super) async fn present(
        &self,
        volume: &Volume,
        verb: &'static str,
    ) -> Result<Option<Device>> {
        Ok(match self.look(volume, verb).await? {
            Sighting::Here(device) => Some(device),
            Sighting::NotYet(_) => None,
        })
    }

    async fn look(&self, volume: &Volume, verb: &'static str) -> Result<Sighting> {
        let at = Quick::new(volume, verb);
        let devices = self.host.devices(quick()).await.map_err(at.failed())?;
        let mut links = Links::default();
        // Where the serial alone decides, links have nothing to add.
        if !devices
            .iter()
            .any(|device| device.serial.as_ref() == Some(&volume.serial))
        {
            for prefix in LINK_PREFIXES {
                let name = format!("{prefix}{}", volume.serial);
                let target = self.host.device_link(quick(), &name).await;
                if let Some(target) = target.map_err(at.failed())? {
                    let path = Path::new("disk/by-id").join(name);
                    links.by_id.push(Link { path, target });
                }
            }
        }
        if let Some(dir) = &self.settings.device_dir {
            let path = dir.join(volume.serial.as_str());
            let target = self.host.link(quick(), &path).await;
            links.marked = target
                .map_err(at.failed())?
                .map(|target| Link { path, target });
        }
        sight(&volume.serial, &devices, &links).map_err(|source| Error::Ambiguous {
            volume: volume.id.clone(),
            source,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::disk;

    fn serial(text: &str) -> Serial {
        Serial::new(text).unwrap()
    }

    fn link(path: &str, target: &str) -> Link {
        Link {
            path: path.into(),
            target: target.into(),
        }
    }

    fn marked(target: &str) -> Links {
        Links {
            by_id: Vec::new(),
            marked: Some(link("/devices/bp1", target)),
        }
    }

    fn loop_device(name: &str, minor: u64, file: &str) -> Device {
        Device {
            serial: None,
            backing_file: Some(file.into()),
            ..disk(name, minor, "x")
        }
    }

    #[test]
    fn the_serial_alone_decides() {
        let devices = [disk("vda", 0, "system"), disk("vdb", 16, "bp1")];
        let sighting = sight(&serial("bp1"), &devices, &Links::default());
        assert_eq!(sighting, Ok(Sighting::Here(devices[1].clone())));
    }

    #[test]
    fn two_devices_with_one_serial_are_refused_and_named() {
        let devices = [disk("vdb", 16, "bp1"), disk("vdc", 32, "bp1")];
        let refused = sight(&serial("bp1"), &devices, &Links::default()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "serial bp1 is that of more than one device: /dev/vdb (254:16) with serial bp1, \
             /dev/vdc (254:32) with serial bp1"
        );
    }

    #[test]
    fn a_disk_without_capacity_is_not_there_yet() {
        let mut device = disk("vdb", 16, "bp1");
        device.size.0 = 0;
        let sighting = sight(&serial("bp1"), &[device], &Links::default());
        let text = "/dev/vdb (254:16) has it, but no capacity yet";
        assert_eq!(sighting, Ok(Sighting::NotYet(text.to_owned())));
    }

    #[test]
    fn a_missing_disk_is_told_with_what_is_there() {
        let devices = [disk("vda", 0, "system")];
        let Ok(Sighting::NotYet(text)) = sight(&serial("bp1"), &devices, &Links::default()) else {
            panic!("found");
        };
        assert_eq!(text, "there are /dev/vda (254:0) with serial system");
    }

    #[test]
    fn a_link_to_a_disk_with_another_serial_is_stale() {
        let devices = [disk("vdb", 16, "bp2")];
        let links = Links {
            by_id: vec![link("disk/by-id/virtio-bp1", "../../vdb")],
            marked: None,
        };
        let refused = sight(&serial("bp1"), &devices, &links).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "disk/by-id/virtio-bp1 leads to /dev/vdb (254:16), which is another disk \
             (serial bp2): the link is stale"
        );
    }

    #[test]
    fn a_link_is_no_proof_of_a_disk_without_serial() {
        let bare = Device {
            serial: None,
            ..disk("vdb", 16, "x")
        };
        let links = Links {
            by_id: vec![link("disk/by-id/virtio-bp1", "../../vdb")],
            marked: None,
        };
        let sighting = sight(&serial("bp1"), &[bare], &links).unwrap();
        assert!(matches!(sighting, Sighting::NotYet(text) if text.contains("nothing proves")));
    }

    #[test]
    fn a_link_that_leads_nowhere_may_be_ahead_of_its_device() {
        let sighting = sight(&serial("bp1"), &[], &marked("/dev/loop3")).unwrap();
        assert!(matches!(sighting, Sighting::NotYet(text) if text.contains("which is gone")));
    }

    #[test]
    fn a_loop_device_is_accepted_by_its_whole_mark_only() {
        let find = |file| {
            let device = loop_device("loop3", 3, file);
            sight(&serial("bp1"), &[device], &marked("/dev/loop3"))
        };
        assert!(matches!(find("/images/bp1.img"), Ok(Sighting::Here(_))));
        for other in ["/images/bp12.img", "/images/xbp1.img", "/bp1/disk.img"] {
            assert!(
                matches!(find(other), Err(FindError::Stale { .. })),
                "{other}"
            );
        }
    }

    #[test]
    fn a_mark_without_a_link_is_not_enough() {
        let device = loop_device("loop3", 3, "/images/bp1.img");
        let sighting = sight(&serial("bp1"), &[device], &Links::default());
        assert!(matches!(sighting, Ok(Sighting::NotYet(_))));
    }

    #[test]
    fn one_file_behind_two_loop_devices_is_refused() {
        let devices = [
            loop_device("loop3", 3, "/images/bp1.img"),
            loop_device("loop4", 4, "/images/bp1.img"),
        ];
        let refused = sight(&serial("bp1"), &devices, &marked("/dev/loop3"));
        assert!(matches!(refused, Err(FindError::Duplicate { .. })));
    }

    #[test]
    fn a_serial_and_a_mark_on_different_devices_are_refused() {
        let devices = [
            disk("vdb", 16, "bp1"),
            loop_device("loop3", 3, "/images/bp1.img"),
        ];
        let refused = sight(&serial("bp1"), &devices, &marked("/dev/loop3"));
        assert!(matches!(refused, Err(FindError::Duplicate { .. })));
    }
}
