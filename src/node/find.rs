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
