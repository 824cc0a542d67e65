//! From a disk to its device. A device is accepted by its serial or its recorded mark, never by name
//! or by a link alone.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::Instant;

use super::mark::{self, Mark};
use super::observe::{CallContext, quick};
use super::request::Volume;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Appearance, Changes, Clues, Device, Link, Traces};
use crate::model::{DiskId, Serial};

/// Waiting ends so long before the caller's deadline, that the answer still reaches it.
const MARGIN: Duration = Duration::from_millis(50);

/// What a look around gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// The device.
    Here(Device),
    /// Not yet; what speaks of it so far.
    NotYet(Vec<String>),
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
    /// A device shows the beginning of the serial, and cannot show more.
    #[error(
        "serial {serial} is longer than what a device shows, and another disk could begin alike: {devices}; if \
         that is the disk, say so with `diskplugin map` on this node"
    )]
    Cut {
        /// The serial.
        serial: Serial,
        /// The devices.
        devices: String,
    },
    /// A person's word and the kernel's do not agree.
    #[error("{device} is marked as this disk, but has serial {serial}: remove the mark")]
    Contradicted {
        /// The device.
        device: String,
        /// Its serial.
        serial: Serial,
    },
    /// A person's words do not agree.
    #[error("{device} is marked as this disk and as {other}: remove the mark that is wrong")]
    MarkedTwice {
        /// The device.
        device: String,
        /// The other disk.
        other: DiskId,
    },
}

/// Decides which device the disk is; `vouched` is the device that a person's mark says it is, in its
/// present appearance.
///
/// # Errors
/// When more than one device answers to the serial, a link leads to another disk, or a mark is contradicted.
pub fn sight(
    serial: &Serial,
    traces: &Traces,
    vouched: Option<&str>,
) -> std::result::Result<Sighting, FindError> {
    let devices = &traces.devices;
    let mut matching: Vec<&Device> = devices
        .iter()
        .filter(|device| device.serial.as_ref() == Some(serial))
        .collect();
    if let Some(marked) = marked(serial, traces)? {
        let file = &marked.backing_file;
        matching.extend(devices.iter().filter(|device| device.backing_file == *file));
    }
    if let Some(device) = vouched_for(serial, traces, vouched)? {
        matching.push(device);
    }
    // A link and a person may lead to the same one.
    let mut seen = BTreeSet::new();
    matching.retain(|device| seen.insert(device.number));
    match matching[..] {
        [] => absent(serial, traces).map(Sighting::NotYet),
        [device] => Ok(match unready(device, traces) {
            Some(reason) => Sighting::NotYet(vec![reason]),
            None => Sighting::Here(device.clone()),
        }),
        _ => Err(FindError::Duplicate {
            serial: serial.clone(),
            devices: list(matching.into_iter()),
        }),
    }
}

/// Why the right device is of no use yet.
fn unready(device: &Device, traces: &Traces) -> Option<String> {
    if device.size.0 == 0 {
        return Some(format!("{device} has it, but no capacity yet"));
    }
    traces.without_node.contains(&device.name).then(|| {
        format!(
            "{device} has it, but {} is not its node: is /dev that of the host?",
            device.path.display()
        )
    })
}

/// The device behind the link in the device directory, if it bears the mark.
fn marked<'a>(
    serial: &Serial,
    traces: &'a Traces,
) -> std::result::Result<Option<&'a Device>, FindError> {
    let Some(link) = &traces.marked else {
        return Ok(None);
    };
    match behind(link, &traces.devices) {
        Some(device) if device.mark() == Some(serial.as_str()) => Ok(Some(device)),
        // A loop device that nothing is bound to yet, or not any more.
        Some(device) if device.backing_file.is_none() && device.serial.is_none() => Ok(None),
        Some(device) => Err(stale(link, device)),
        None => Ok(None),
    }
}

/// The device that a person's mark says is the disk, unless its own serial says so anyway.
fn vouched_for<'a>(
    serial: &Serial,
    traces: &'a Traces,
    vouched: Option<&str>,
) -> std::result::Result<Option<&'a Device>, FindError> {
    let mut devices = traces.devices.iter();
    let Some(device) = vouched.and_then(|name| devices.find(|device| device.name == name)) else {
        return Ok(None);
    };
    match &device.serial {
        None => Ok(Some(device)),
        Some(shown) if shown.is_cut_of(serial) => Ok(Some(device)),
        Some(shown) if shown == serial => Ok(None),
        Some(shown) => Err(FindError::Contradicted {
            device: device.to_string(),
            serial: shown.clone(),
        }),
    }
}

/// No device has it. A link that leads to another disk is refused at once: it will not change its
/// mind. One that leads nowhere may be ahead of its device.
fn absent(serial: &Serial, traces: &Traces) -> std::result::Result<Vec<String>, FindError> {
    let is_cut = |device: &&Device| {
        let shown = device.serial.as_ref();
        shown.is_some_and(|shown| shown.is_cut_of(serial))
    };
    let mut cut = traces.devices.iter().filter(is_cut).peekable();
    if cut.peek().is_some() {
        return Err(FindError::Cut {
            serial: serial.clone(),
            devices: list(cut),
        });
    }
    let mut notes = Vec::new();
    for link in traces.by_id.iter().chain(&traces.marked) {
        match behind(link, &traces.devices) {
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
    Ok(notes)
}

/// The device that a link leads to.
fn behind<'a>(link: &Link, devices: &'a [Device]) -> Option<&'a Device> {
    let name = link.leads_to()?;
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
        const VERB: &str = "finding its device";
        let start = Instant::now();
        let mut changes = None;
        loop {
            let notes = match self.look(volume, VERB).await? {
                Sighting::Here(device) => {
                    let waited_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                    tracing::info!(disk.id = %volume.id, %device, waited_ms, "device found");
                    return Ok(device);
                }
                Sighting::NotYet(notes) => notes,
            };
            if !self.await_change(&mut changes, deadline).await {
                let around = self.surroundings(CallContext::new(volume, VERB)).await?;
                return Err(Error::NoDevice {
                    volume: volume.id.clone(),
                    serial: volume.serial.clone(),
                    seen: around.tell(volume, notes),
                });
            }
        }
    }

    /// Waits until it is time to look again; false when the deadline leaves no time to wait. The
    /// first call opens the ear and returns at once: only a look after that misses nothing.
    pub(super) async fn await_change(
        &self,
        changes: &mut Option<Changes>,
        deadline: Deadline,
    ) -> bool {
        let Some(changes) = changes else {
            *changes = Some(self.host.changes(self.settings.device_dir.as_deref()));
            return true;
        };
        let left = deadline.remaining().saturating_sub(MARGIN);
        Deadline::after(left).bound(changes.next()).await.is_ok()
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
        let at = CallContext::new(volume, verb);
        let mut clues = Clues {
            serial: volume.serial.clone(),
            name: None,
            directory: self.settings.device_dir.clone(),
        };
        // Few disks are marked.
        let (mark, traces) = tokio::join!(
            mark::of(&self.records, &volume.id),
            self.host.search(quick(), &clues)
        );
        let mark = mark.map_err(at.failed())?;
        let mut traces = traces.map_err(at.failed())?;
        if let Some(mark) = &mark {
            clues.name = Some(mark.appearance.name().to_owned());
            let again = self.host.search(quick(), &clues).await;
            traces = again.map_err(at.failed())?;
        }
        let unclear = |source| Error::Ambiguous {
            volume: volume.id.clone(),
            source,
        };
        let Some(mark) = mark else {
            return sight(&volume.serial, &traces, None).map_err(unclear);
        };
        let counts = self.counts(&mark, &traces, at).await?;
        if counts && let Some(other) = self.marked_as(&mark, volume, at).await? {
            let device = mark.appearance.to_string();
            return Err(unclear(FindError::MarkedTwice { device, other }));
        }
        let vouched = counts.then(|| mark.appearance.name());
        let mut sighting = sight(&volume.serial, &traces, vouched).map_err(unclear)?;
        if let (false, Sighting::NotYet(notes)) = (counts, &mut sighting) {
            notes.push(format!(
                "it was marked as {}, which has left since",
                mark.appearance
            ));
        }
        Ok(sighting)
    }

    /// Whether the marked device has not left since it was marked.
    async fn counts(&self, mark: &Mark, traces: &Traces, at: CallContext<'_>) -> Result<bool> {
        let boot = self.host.boot_id(quick()).await.map_err(at.failed())?;
        let mut devices = traces.devices.iter();
        Ok(devices.any(|device| Appearance::of(&boot, device).as_ref() == Some(&mark.appearance)))
    }

    /// Another disk that is marked as the same device.
    async fn marked_as(
        &self,
        mark: &Mark,
        volume: &Volume,
        at: CallContext<'_>,
    ) -> Result<Option<DiskId>> {
        // One that does not read is no word of anybody's.
        let (marks, _) = mark::all(&self.records).await.map_err(at.failed())?;
        let mut others = marks.into_iter().filter(|(disk, _)| *disk != volume.id);
        Ok(others
            .find(|(_, other)| other == mark)
            .map(|(disk, _)| disk))
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

    fn shown(devices: &[Device]) -> Traces {
        Traces {
            devices: devices.to_vec(),
            ..Traces::default()
        }
    }

    fn linked(devices: &[Device]) -> Traces {
        Traces {
            by_id: vec![link("disk/by-id/virtio-bp1", "../../vdb")],
            ..shown(devices)
        }
    }

    fn marked(devices: &[Device]) -> Traces {
        Traces {
            marked: Some(link("/devices/bp1", "/dev/loop3")),
            ..shown(devices)
        }
    }

    fn sight_bp1(traces: &Traces) -> std::result::Result<Sighting, FindError> {
        sight(&serial("bp1"), traces, None)
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
        let sighting = sight_bp1(&shown(&devices));
        assert_eq!(sighting, Ok(Sighting::Here(devices[1].clone())));
    }

    #[test]
    fn two_devices_with_one_serial_are_refused_and_named() {
        let devices = [disk("vdb", 16, "bp1"), disk("vdc", 32, "bp1")];
        let refused = sight_bp1(&shown(&devices)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "serial bp1 is that of more than one device: /dev/vdb (254:16) with serial bp1, \
             /dev/vdc (254:32) with serial bp1"
        );
    }

    #[test]
    fn a_disk_without_capacity_or_node_is_not_there_yet() {
        let device = disk("vdb", 16, "bp1");
        let mut small = device.clone();
        small.size.0 = 0;
        let nodeless = Traces {
            without_node: vec!["vdb".to_owned()],
            ..shown(&[device])
        };
        for (traces, text) in [
            (
                shown(&[small]),
                "/dev/vdb (254:16) has it, but no capacity yet",
            ),
            (
                nodeless,
                "/dev/vdb (254:16) has it, but /dev/vdb is not its node: is /dev that of the host?",
            ),
        ] {
            let sighting = sight_bp1(&traces);
            assert_eq!(sighting, Ok(Sighting::NotYet(vec![text.to_owned()])));
        }
    }

    #[test]
    fn a_link_to_a_disk_with_another_serial_is_stale() {
        let refused = sight_bp1(&linked(&[disk("vdb", 16, "bp2")])).unwrap_err();
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
        let sighting = sight_bp1(&linked(&[bare])).unwrap();
        assert!(matches!(sighting, Sighting::NotYet(notes) if notes[0].contains("nothing proves")));
    }

    #[test]
    fn a_link_that_leads_nowhere_may_be_ahead_of_its_device() {
        let sighting = sight_bp1(&marked(&[])).unwrap();
        assert!(matches!(sighting, Sighting::NotYet(notes) if notes[0].contains("which is gone")));
    }

    #[test]
    fn a_loop_device_is_accepted_by_its_whole_mark_only() {
        let find = |file| sight_bp1(&marked(&[loop_device("loop3", 3, file)]));
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
        let sighting = sight_bp1(&shown(&[loop_device("loop3", 3, "/images/bp1.img")]));
        assert_eq!(sighting, Ok(Sighting::NotYet(Vec::new())));
    }

    #[test]
    fn one_file_behind_two_loop_devices_is_refused() {
        let refused = sight_bp1(&marked(&[
            loop_device("loop3", 3, "/images/bp1.img"),
            loop_device("loop4", 4, "/images/bp1.img"),
        ]));
        assert!(matches!(refused, Err(FindError::Duplicate { .. })));
    }

    #[test]
    fn a_serial_and_a_mark_on_different_devices_are_refused() {
        let refused = sight_bp1(&marked(&[
            disk("vdb", 16, "bp1"),
            loop_device("loop3", 3, "/images/bp1.img"),
        ]));
        assert!(matches!(refused, Err(FindError::Duplicate { .. })));
    }

    fn bare(name: &str, minor: u64) -> Device {
        Device {
            serial: None,
            ..disk(name, minor, "x")
        }
    }

    #[test]
    fn a_disk_without_serial_is_accepted_at_a_persons_word_only() {
        let traces = shown(&[bare("vdb", 16)]);
        let here = sight(&serial("bp1"), &traces, Some("vdb"));
        assert_eq!(here, Ok(Sighting::Here(bare("vdb", 16))));
        for vouched in [None, Some("vdc")] {
            let nothing = sight(&serial("bp1"), &traces, vouched);
            assert_eq!(nothing, Ok(Sighting::NotYet(Vec::new())));
        }
    }

    #[test]
    fn a_word_that_the_kernel_contradicts_is_refused() {
        let other = shown(&[disk("vdb", 16, "bp2")]);
        let refused = sight(&serial("bp1"), &other, Some("vdb"));
        assert!(matches!(refused, Err(FindError::Contradicted { .. })));
        let both = shown(&[bare("vdb", 16), disk("vdc", 32, "bp1")]);
        let refused = sight(&serial("bp1"), &both, Some("vdb"));
        assert!(matches!(refused, Err(FindError::Duplicate { .. })));
        // What both say is no contradiction.
        let same = shown(&[disk("vdb", 16, "bp1")]);
        let here = sight(&serial("bp1"), &same, Some("vdb"));
        assert!(matches!(here, Ok(Sighting::Here(_))));
    }

    #[test]
    fn a_device_that_a_link_and_a_person_lead_to_is_one() {
        let device = loop_device("loop3", 3, "/images/bp1.img");
        let traces = marked(std::slice::from_ref(&device));
        let seen = sight(&serial("bp1"), &traces, Some("loop3"));
        assert_eq!(seen.unwrap(), Sighting::Here(device));
    }

    #[test]
    fn a_serial_that_no_device_can_show_whole_is_refused_or_vouched_for() {
        let (long, cut) = ("bp18um4r4f2fve24k7qz1", "bp18um4r4f2fve24k7qz");
        let traces = shown(&[disk("vdb", 16, cut)]);
        let refused = sight(&serial(long), &traces, None).unwrap_err();
        assert!(refused.to_string().contains("/dev/vdb"), "{refused}");
        assert!(matches!(refused, FindError::Cut { .. }));
        let here = sight(&serial(long), &traces, Some("vdb"));
        assert!(matches!(here, Ok(Sighting::Here(_))));
        // The disk whose serial it is as a whole is not mixed up with it.
        let whole = sight(&serial(cut), &traces, None);
        assert!(matches!(whole, Ok(Sighting::Here(_))));
        let nothing = sight(&serial(long), &Traces::default(), None);
        assert_eq!(nothing, Ok(Sighting::NotYet(Vec::new())));
    }

    #[test]
    fn two_namespaces_of_one_controller_are_refused() {
        let namespaces = [disk("nvme1n1", 1, "bp1"), disk("nvme1n2", 2, "bp1")];
        let refused = sight_bp1(&shown(&namespaces)).unwrap_err();
        assert!(refused.to_string().contains("/dev/nvme1n2"), "{refused}");
    }
}
