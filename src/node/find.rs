//! Resolves a disk to its block device. A device is accepted by its serial or its recorded mapping, never by name or by
//! a link alone.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::device_not_found::ExistingDevices;
use super::map::{self, Mapping};
use super::observe::{CallContext, quick};
use super::request::Volume;
use super::{Error, Result};
use crate::base::Deadline;
use crate::host::{
    Candidates, Device, DeviceChanges, DeviceIncarnation, Host, Link, Records, SearchQuery,
};
use crate::model::{DiskId, Serial};

/// Waiting ends this long before the caller's deadline, so that the error still reaches the caller.
const MARGIN: Duration = Duration::from_millis(50);

/// How long the kernel may take to add the partitions of a disk.
const PARTITION_SCAN: Duration = Duration::from_secs(5);

/// The result of a lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    Found(Box<Device>),
    /// The device does not exist yet; notes about links and devices that do not identify it.
    NotFound(Vec<String>),
}

/// A contradiction that waiting does not resolve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Several devices have the serial.
    #[error("more than one device has serial {serial}: {devices}")]
    DuplicateSerial { serial: Serial, devices: String },
    /// A link points to another disk.
    #[error("{} points to {device}, which is another disk ({identity}): the link is stale", link.display())]
    StaleLink {
        link: PathBuf,
        device: String,
        identity: String,
    },
    /// A device reports a truncated serial that matches.
    #[error(
        "serial {serial} is longer than a device reports, so it is ambiguous: {devices}; if that is the disk, map it \
         with `diskplugin map` on this node"
    )]
    TruncatedSerial { serial: Serial, devices: String },
    /// The mapping contradicts the serial that the kernel reports.
    #[error("{device} is mapped to this disk, but has serial {serial}: remove the mapping")]
    MappingConflict { device: String, serial: Serial },
    /// Two disks are mapped to the same device.
    #[error("{device} is mapped to this disk and to {other}: remove the wrong mapping")]
    MappedTwice { device: String, other: DiskId },
}

/// Determines the disk's device; `mapped` is the name of the device that the disk is mapped to, if
/// the mapping is of its current incarnation.
///
/// # Errors
/// If more than one device has the serial, a link points to another disk, or a mapping is contradicted.
pub fn resolve_device(
    serial: &Serial,
    candidates: &Candidates,
    mapped: Option<&str>,
) -> std::result::Result<Lookup, ResolveError> {
    let devices = &candidates.devices;
    let mut matching: Vec<&Device> = devices
        .iter()
        .filter(|device| device.serial.as_ref() == Some(serial))
        .collect();
    if let Some(linked) = linked_device(serial, candidates)? {
        let file = &linked.backing_file;
        matching.extend(devices.iter().filter(|device| device.backing_file == *file));
    }
    if let Some(device) = mapped_device(serial, candidates, mapped)? {
        matching.push(device);
    }
    // A link and a mapping may name the same device.
    let mut seen = BTreeSet::new();
    matching.retain(|device| seen.insert(device.number));
    match matching[..] {
        [] => notes(serial, candidates).map(Lookup::NotFound),
        [device] => Ok(match unready(device, candidates) {
            Some(reason) => Lookup::NotFound(vec![reason]),
            None => Lookup::Found(Box::new(device.clone())),
        }),
        _ => Err(ResolveError::DuplicateSerial {
            serial: serial.clone(),
            devices: list(matching.into_iter()),
        }),
    }
}

/// The reason why the right device is not usable yet.
fn unready(device: &Device, candidates: &Candidates) -> Option<String> {
    if device.size.0 == 0 {
        return Some(format!("{device} has the serial, but no capacity yet"));
    }
    candidates.without_node.contains(&device.name).then(|| {
        format!(
            "{device} has the serial, but {} is not its device node: check that /dev is the host's",
            device.path.display()
        )
    })
}

/// The device that the link in the device directory points to, if its backing file has the serial.
fn linked_device<'a>(
    serial: &Serial,
    candidates: &'a Candidates,
) -> std::result::Result<Option<&'a Device>, ResolveError> {
    let Some(link) = &candidates.device_dir_link else {
        return Ok(None);
    };
    match target(link, &candidates.devices) {
        Some(device) if device.backing_serial() == Some(serial.as_str()) => Ok(Some(device)),
        // A loop device without a backing file, before or after its use.
        Some(device) if device.backing_file.is_none() && device.serial.is_none() => Ok(None),
        Some(device) => Err(stale(link, device)),
        None => Ok(None),
    }
}

/// The device that the disk is mapped to, unless its own serial matches anyway.
fn mapped_device<'a>(
    serial: &Serial,
    candidates: &'a Candidates,
    mapped: Option<&str>,
) -> std::result::Result<Option<&'a Device>, ResolveError> {
    let mut devices = candidates.devices.iter();
    let Some(device) = mapped.and_then(|name| devices.find(|device| device.name == name)) else {
        return Ok(None);
    };
    match &device.serial {
        None => Ok(Some(device)),
        Some(reported) if reported.is_truncation_of(serial) => Ok(Some(device)),
        Some(reported) if reported == serial => Ok(None),
        Some(reported) => Err(ResolveError::MappingConflict {
            device: device.to_string(),
            serial: reported.clone(),
        }),
    }
}

/// Notes about a disk without a device. A link to another disk is an error, because it does not resolve itself; a
/// dangling link can precede its device.
fn notes(
    serial: &Serial,
    candidates: &Candidates,
) -> std::result::Result<Vec<String>, ResolveError> {
    let is_truncated = |device: &&Device| {
        let reported = device.serial.as_ref();
        reported.is_some_and(|reported| reported.is_truncation_of(serial))
    };
    let mut truncated = candidates.devices.iter().filter(is_truncated).peekable();
    if truncated.peek().is_some() {
        return Err(ResolveError::TruncatedSerial {
            serial: serial.clone(),
            devices: list(truncated),
        });
    }
    let mut notes = Vec::new();
    for link in candidates.by_id.iter().chain(&candidates.device_dir_link) {
        match target(link, &candidates.devices) {
            // With the right serial, the device would have been found by it.
            Some(device) if device.serial.is_some() => return Err(stale(link, device)),
            Some(device) => notes.push(format!(
                "{} points to {device}, which is not proven to be the disk ({})",
                link.path.display(),
                device.identity()
            )),
            None => notes.push(format!(
                "{} points to {}, which does not exist",
                link.path.display(),
                link.target.display()
            )),
        }
    }
    Ok(notes)
}

/// The device that a link points to.
fn target<'a>(link: &Link, devices: &'a [Device]) -> Option<&'a Device> {
    let name = link.target_name()?;
    devices.iter().find(|device| device.name == name)
}

fn stale(link: &Link, device: &Device) -> ResolveError {
    ResolveError::StaleLink {
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

/// Finds the devices of volumes.
#[derive(Debug, Clone)]
pub(super) struct DeviceFinder {
    pub(super) host: Arc<dyn Host>,
    /// The directory of the mappings.
    pub(super) records: Records,
    /// The device directory of the fake cloud.
    pub(super) device_dir: Option<PathBuf>,
}

impl DeviceFinder {
    /// Waits for the volume's device until the deadline.
    pub(super) async fn wait_for_device(
        &self,
        volume: &Volume,
        deadline: Deadline,
    ) -> Result<Device> {
        const OPERATION: &str = "finding its device";
        let start = Instant::now();
        let mut changes = None;
        loop {
            let notes = match self.lookup(volume, OPERATION).await? {
                Lookup::Found(device) => {
                    let waited_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                    tracing::info!(disk.id = %volume.id, %device, waited_ms, "device found");
                    return Ok(*device);
                }
                Lookup::NotFound(notes) => notes,
            };
            if !self.await_change(&mut changes, deadline).await {
                let existing =
                    ExistingDevices::list(&*self.host, CallContext::new(volume, OPERATION)).await?;
                return Err(Error::DeviceNotFound {
                    volume: volume.id.clone(),
                    serial: volume.serial.clone(),
                    existing: existing.describe(volume, notes),
                });
            }
        }
    }

    /// Waits briefly for the partitions of a device. The kernel adds them after the disk, and a disk may have none.
    pub(super) async fn wait_for_partitions(
        &self,
        volume: &Volume,
        mut device: Device,
        deadline: Deadline,
    ) -> Result<Device> {
        let deadline = deadline.at_most(PARTITION_SCAN);
        let mut changes = None;
        while device.partitions.is_empty() && self.await_change(&mut changes, deadline).await {
            if let Some(now) = self.lookup_device(volume, "finding its partition").await? {
                device = now;
            }
        }
        Ok(device)
    }

    /// Waits until the next lookup is due; false if the deadline leaves no time to wait. The first call subscribes to
    /// changes and returns immediately: only a lookup after that misses no change.
    pub(super) async fn await_change(
        &self,
        changes: &mut Option<DeviceChanges>,
        deadline: Deadline,
    ) -> bool {
        let Some(changes) = changes else {
            *changes = Some(self.host.changes(self.device_dir.as_deref()));
            return true;
        };
        let remaining = deadline.remaining().saturating_sub(MARGIN);
        Deadline::after(remaining)
            .bound(changes.next())
            .await
            .is_ok()
    }

    /// The volume's device, if it exists now.
    pub(super) async fn lookup_device(
        &self,
        volume: &Volume,
        operation: &'static str,
    ) -> Result<Option<Device>> {
        Ok(match self.lookup(volume, operation).await? {
            Lookup::Found(device) => Some(*device),
            Lookup::NotFound(_) => None,
        })
    }

    async fn lookup(&self, volume: &Volume, operation: &'static str) -> Result<Lookup> {
        let call = CallContext::new(volume, operation);
        let mut query = SearchQuery {
            serial: volume.serial.clone(),
            name: None,
            directory: self.device_dir.clone(),
        };
        // Few disks are mapped.
        let (mapping, candidates) = tokio::join!(
            map::get(&self.records, &volume.id),
            self.host.search(quick(), &query)
        );
        let mapping = mapping.map_err(call.failed())?;
        let mut candidates = candidates.map_err(call.failed())?;
        if let Some(mapping) = &mapping {
            query.name = Some(mapping.incarnation.name().to_owned());
            let again = self.host.search(quick(), &query).await;
            candidates = again.map_err(call.failed())?;
        }
        let ambiguous = |source| Error::DeviceAmbiguous {
            volume: volume.id.clone(),
            source,
        };
        let Some(mapping) = mapping else {
            return resolve_device(&volume.serial, &candidates, None).map_err(ambiguous);
        };
        let is_current = self.is_current(&mapping, &candidates, call).await?;
        if is_current && let Some(other) = self.other_mapping(&mapping, volume, call).await? {
            let device = mapping.incarnation.to_string();
            return Err(ambiguous(ResolveError::MappedTwice { device, other }));
        }
        let mapped = is_current.then(|| mapping.incarnation.name());
        let mut lookup = resolve_device(&volume.serial, &candidates, mapped).map_err(ambiguous)?;
        if let (false, Lookup::NotFound(notes)) = (is_current, &mut lookup) {
            notes.push(format!(
                "it was mapped to {}, which has been removed since",
                mapping.incarnation
            ));
        }
        Ok(lookup)
    }

    /// Whether the mapped device has not been removed since it was mapped.
    async fn is_current(
        &self,
        mapping: &Mapping,
        candidates: &Candidates,
        call: CallContext<'_>,
    ) -> Result<bool> {
        let boot = self.host.boot_id(quick()).await.map_err(call.failed())?;
        let mut devices = candidates.devices.iter();
        Ok(devices.any(|device| {
            DeviceIncarnation::new(&boot, device).as_ref() == Some(&mapping.incarnation)
        }))
    }

    /// Another disk that is mapped to the same device.
    async fn other_mapping(
        &self,
        mapping: &Mapping,
        volume: &Volume,
        call: CallContext<'_>,
    ) -> Result<Option<DiskId>> {
        // Unreadable mappings do not count.
        let (mappings, _) = map::all(&self.records).await.map_err(call.failed())?;
        let mut others = mappings.into_iter().filter(|(disk, _)| *disk != volume.id);
        Ok(others
            .find(|(_, other)| other == mapping)
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

    fn candidates(devices: &[Device]) -> Candidates {
        Candidates {
            devices: devices.to_vec(),
            ..Candidates::default()
        }
    }

    fn with_by_id_link(devices: &[Device]) -> Candidates {
        Candidates {
            by_id: vec![link("disk/by-id/virtio-bp1", "../../vdb")],
            ..candidates(devices)
        }
    }

    fn with_device_link(devices: &[Device]) -> Candidates {
        Candidates {
            device_dir_link: Some(link("/devices/bp1", "/dev/loop3")),
            ..candidates(devices)
        }
    }

    fn resolve_bp1(candidates: &Candidates) -> std::result::Result<Lookup, ResolveError> {
        resolve_device(&serial("bp1"), candidates, None)
    }

    fn loop_device(name: &str, minor: u64, file: &str) -> Device {
        Device {
            serial: None,
            backing_file: Some(file.into()),
            ..disk(name, minor, "x")
        }
    }

    #[test]
    fn a_device_is_found_by_its_serial() {
        let devices = [disk("vda", 0, "system"), disk("vdb", 16, "bp1")];
        let lookup = resolve_bp1(&candidates(&devices));
        assert_eq!(lookup, Ok(Lookup::Found(Box::new(devices[1].clone()))));
    }

    #[test]
    fn two_devices_with_one_serial_are_an_error() {
        let devices = [disk("vdb", 16, "bp1"), disk("vdc", 32, "bp1")];
        let error = resolve_bp1(&candidates(&devices)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "more than one device has serial bp1: /dev/vdb (254:16) with serial bp1, \
             /dev/vdc (254:32) with serial bp1"
        );
    }

    #[test]
    fn a_disk_without_capacity_or_device_node_is_not_found_yet() {
        let device = disk("vdb", 16, "bp1");
        let mut small = device.clone();
        small.size.0 = 0;
        let nodeless = Candidates {
            without_node: vec!["vdb".to_owned()],
            ..candidates(&[device])
        };
        for (candidates, text) in [
            (
                candidates(&[small]),
                "/dev/vdb (254:16) has the serial, but no capacity yet",
            ),
            (
                nodeless,
                "/dev/vdb (254:16) has the serial, but /dev/vdb is not its device node: check that /dev is the host's",
            ),
        ] {
            let lookup = resolve_bp1(&candidates);
            assert_eq!(lookup, Ok(Lookup::NotFound(vec![text.to_owned()])));
        }
    }

    #[test]
    fn a_link_to_a_disk_with_another_serial_is_stale() {
        let error = resolve_bp1(&with_by_id_link(&[disk("vdb", 16, "bp2")])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "disk/by-id/virtio-bp1 points to /dev/vdb (254:16), which is another disk \
             (serial bp2): the link is stale"
        );
    }

    #[test]
    fn a_link_does_not_identify_a_disk_without_serial() {
        let without_serial = Device {
            serial: None,
            ..disk("vdb", 16, "x")
        };
        let lookup = resolve_bp1(&with_by_id_link(&[without_serial])).unwrap();
        assert!(matches!(lookup, Lookup::NotFound(notes) if notes[0].contains("not proven")));
    }

    #[test]
    fn a_dangling_link_can_precede_its_device() {
        let lookup = resolve_bp1(&with_device_link(&[])).unwrap();
        assert!(
            matches!(lookup, Lookup::NotFound(notes) if notes[0].contains("which does not exist"))
        );
    }

    #[test]
    fn a_loop_device_is_accepted_by_its_complete_file_name_only() {
        let find = |file| resolve_bp1(&with_device_link(&[loop_device("loop3", 3, file)]));
        assert!(matches!(find("/images/bp1.img"), Ok(Lookup::Found(_))));
        for other in ["/images/bp12.img", "/images/xbp1.img", "/bp1/disk.img"] {
            assert!(
                matches!(find(other), Err(ResolveError::StaleLink { .. })),
                "{other}"
            );
        }
    }

    #[test]
    fn a_backing_file_without_a_link_is_not_sufficient() {
        let lookup = resolve_bp1(&candidates(&[loop_device("loop3", 3, "/images/bp1.img")]));
        assert_eq!(lookup, Ok(Lookup::NotFound(Vec::new())));
    }

    #[test]
    fn two_loop_devices_of_one_file_are_an_error() {
        let error = resolve_bp1(&with_device_link(&[
            loop_device("loop3", 3, "/images/bp1.img"),
            loop_device("loop4", 4, "/images/bp1.img"),
        ]));
        assert!(matches!(error, Err(ResolveError::DuplicateSerial { .. })));
    }

    #[test]
    fn a_serial_and_a_link_to_different_devices_are_an_error() {
        let error = resolve_bp1(&with_device_link(&[
            disk("vdb", 16, "bp1"),
            loop_device("loop3", 3, "/images/bp1.img"),
        ]));
        assert!(matches!(error, Err(ResolveError::DuplicateSerial { .. })));
    }

    fn without_serial(name: &str, minor: u64) -> Device {
        Device {
            serial: None,
            ..disk(name, minor, "x")
        }
    }

    #[test]
    fn a_disk_without_serial_is_accepted_only_if_mapped() {
        let candidates = candidates(&[without_serial("vdb", 16)]);
        let found = resolve_device(&serial("bp1"), &candidates, Some("vdb"));
        assert_eq!(
            found,
            Ok(Lookup::Found(Box::new(without_serial("vdb", 16))))
        );
        for mapped in [None, Some("vdc")] {
            let not_found = resolve_device(&serial("bp1"), &candidates, mapped);
            assert_eq!(not_found, Ok(Lookup::NotFound(Vec::new())));
        }
    }

    #[test]
    fn a_mapping_that_contradicts_the_serial_is_an_error() {
        let other = candidates(&[disk("vdb", 16, "bp2")]);
        let error = resolve_device(&serial("bp1"), &other, Some("vdb"));
        assert!(matches!(error, Err(ResolveError::MappingConflict { .. })));
        let both = candidates(&[without_serial("vdb", 16), disk("vdc", 32, "bp1")]);
        let error = resolve_device(&serial("bp1"), &both, Some("vdb"));
        assert!(matches!(error, Err(ResolveError::DuplicateSerial { .. })));
        // A mapping that agrees with the serial is valid.
        let same = candidates(&[disk("vdb", 16, "bp1")]);
        let found = resolve_device(&serial("bp1"), &same, Some("vdb"));
        assert!(matches!(found, Ok(Lookup::Found(_))));
    }

    #[test]
    fn a_device_with_link_and_mapping_is_found_once() {
        let device = loop_device("loop3", 3, "/images/bp1.img");
        let candidates = with_device_link(std::slice::from_ref(&device));
        let lookup = resolve_device(&serial("bp1"), &candidates, Some("loop3"));
        assert_eq!(lookup.unwrap(), Lookup::Found(Box::new(device)));
    }

    #[test]
    fn a_truncated_serial_requires_a_mapping() {
        let (long, cut) = ("bp18um4r4f2fve24k7qz1", "bp18um4r4f2fve24k7qz");
        let candidates = candidates(&[disk("vdb", 16, cut)]);
        let error = resolve_device(&serial(long), &candidates, None).unwrap_err();
        assert!(error.to_string().contains("/dev/vdb"), "{error}");
        assert!(matches!(error, ResolveError::TruncatedSerial { .. }));
        let found = resolve_device(&serial(long), &candidates, Some("vdb"));
        assert!(matches!(found, Ok(Lookup::Found(_))));
        // The disk whose complete serial it is resolves to the device.
        let complete = resolve_device(&serial(cut), &candidates, None);
        assert!(matches!(complete, Ok(Lookup::Found(_))));
        let not_found = resolve_device(&serial(long), &Candidates::default(), None);
        assert_eq!(not_found, Ok(Lookup::NotFound(Vec::new())));
    }

    #[test]
    fn two_namespaces_with_one_serial_are_an_error() {
        let namespaces = [disk("nvme1n1", 1, "bp1"), disk("nvme1n2", 2, "bp1")];
        let error = resolve_bp1(&candidates(&namespaces)).unwrap_err();
        assert!(error.to_string().contains("/dev/nvme1n2"), "{error}");
    }
}
