//! Resolves a disk to its block device. A device is accepted by its serial, never by name or by a link alone.

use std::time::Duration;

use tokio::time::Instant;

use super::Result;
use super::device_not_found::ExistingDevices;
use super::observe::{CallContext, Observer, quick};
use crate::base::Deadline;
use crate::linux::{Candidates, Device, DeviceChanges, Link};
use crate::model::{Failure, Serial};

/// Waiting ends this long before the caller's deadline, so that the error still reaches the caller.
const MARGIN: Duration = Duration::from_millis(50);

/// Time for the list of the existing devices in the error, on a busy node.
const LIST_TIME: Duration = Duration::from_millis(500);

/// How long the kernel may take to add the partitions of a disk.
const PARTITION_SCAN: Duration = Duration::from_secs(5);

/// The device of a disk. Without one, notes about links and devices that do not identify it.
type Lookup = std::result::Result<Device, Vec<String>>;

/// A contradiction that waiting does not resolve: several devices have the serial, or a link points to another disk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
struct Ambiguous(String);

/// Determines the disk's device.
fn resolve_device(serial: &Serial, candidates: &Candidates) -> std::result::Result<Lookup, Ambiguous> {
    let linked = linked_device(serial, candidates)?;
    let is_match = |device: &&Device| {
        device.serial.as_ref() == Some(serial)
            || linked.is_some_and(|linked| linked.backing_file == device.backing_file)
    };
    let matching: Vec<&Device> = candidates.devices.iter().filter(is_match).collect();
    match matching[..] {
        [] => notes(candidates).map(Err),
        [device] => Ok(match unready(device, candidates) {
            Some(reason) => Err(vec![reason]),
            None => Ok(device.clone()),
        }),
        _ => {
            let described = matching
                .iter()
                .map(|device| format!("{device} with {}", device.identity()));
            let devices = described.collect::<Vec<_>>().join(", ");
            Err(Ambiguous(format!(
                "more than one device has serial {serial}: {devices}"
            )))
        }
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
) -> std::result::Result<Option<&'a Device>, Ambiguous> {
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

/// Notes about a disk without a device. A link to another disk is an error, because it does not resolve itself; a
/// dangling link can precede its device.
fn notes(candidates: &Candidates) -> std::result::Result<Vec<String>, Ambiguous> {
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

fn target<'a>(link: &Link, devices: &'a [Device]) -> Option<&'a Device> {
    let name = link.target_name()?;
    devices.iter().find(|device| device.name == name)
}

fn stale(link: &Link, device: &Device) -> Ambiguous {
    let (link, identity) = (link.path.display(), device.identity());
    Ambiguous(format!(
        "{link} points to {device}, which is another disk ({identity}): the link is stale"
    ))
}

impl Observer {
    pub(super) async fn wait_for_device(&self, call: CallContext<'_>, deadline: Deadline) -> Result<Device> {
        let operation = "finding its device";
        let call = CallContext { operation, ..call };
        let start = Instant::now();
        // The error, with the devices that exist, must reach the caller in time.
        let time = deadline.remaining();
        let deadline = deadline.at_most(time - LIST_TIME.min(time / 4));
        let mut changes = None;
        loop {
            let notes = match self.lookup(call).await? {
                Ok(device) => {
                    let waited_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                    tracing::info!(disk.id = %call.id(), %device, waited_ms, "device found");
                    return Ok(device);
                }
                Err(notes) => notes,
            };
            if !self.await_change(call, &mut changes, deadline).await {
                let existing = ExistingDevices::list(call).await?.describe(notes);
                let serial = &call.volume.serial;
                let message = format!("no device with serial {serial} appeared by the deadline: {existing}");
                return Err(call.error(Failure::DeviceNotFound, message));
            }
        }
    }

    /// Waits briefly for the partitions of a device. The kernel adds them after the disk, and a disk may have none.
    pub(super) async fn wait_for_partitions(
        &self,
        call: CallContext<'_>,
        mut device: Device,
        deadline: Deadline,
    ) -> Result<Device> {
        let operation = "finding its partition";
        let call = CallContext { operation, ..call };
        let deadline = deadline.at_most(PARTITION_SCAN);
        let mut changes = None;
        while device.partitions.is_empty() && self.await_change(call, &mut changes, deadline).await {
            if let Some(now) = self.lookup_device(call).await? {
                device = now;
            }
        }
        Ok(device)
    }

    /// Waits until the next lookup is due; false if the deadline leaves no time to wait. The first call subscribes to
    /// changes and returns immediately: only a lookup after that misses no change.
    pub(super) async fn await_change(
        &self,
        call: CallContext<'_>,
        changes: &mut Option<DeviceChanges>,
        deadline: Deadline,
    ) -> bool {
        let Some(changes) = changes else {
            *changes = Some(call.host.changes(self.device_dir.is_some()));
            return true;
        };
        let remaining = deadline.remaining().saturating_sub(MARGIN);
        Deadline::after(remaining).bound(changes.next()).await.is_ok()
    }

    /// The volume's device, if it exists now.
    pub(super) async fn lookup_device(&self, call: CallContext<'_>) -> Result<Option<Device>> {
        Ok(self.lookup(call).await?.ok())
    }

    async fn lookup(&self, call: CallContext<'_>) -> Result<Lookup> {
        let candidates = self.search(call).await?;
        resolve_device(&call.volume.serial, &candidates).map_err(|source| {
            let error = call.error(Failure::DeviceAmbiguous, "its device cannot be determined");
            error.with_source(source)
        })
    }

    pub(super) async fn search(&self, call: CallContext<'_>) -> Result<Candidates> {
        let (serial, directory) = (&call.volume.serial, self.device_dir.as_deref());
        call.wrap(call.host.search(quick(), serial, directory)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fake::disk;

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

    fn resolve_bp1(candidates: &Candidates) -> std::result::Result<Lookup, Ambiguous> {
        resolve_device(&serial("bp1"), candidates)
    }

    fn loop_device(name: &str, minor: u64, file: &str) -> Device {
        Device {
            backing_file: Some(file.into()),
            ..disk(name, minor, "")
        }
    }

    #[test]
    fn a_device_is_found_by_its_serial() {
        let devices = [disk("vda", 0, "system"), disk("vdb", 16, "bp1")];
        let lookup = resolve_bp1(&candidates(&devices));
        assert_eq!(lookup, Ok(Ok(devices[1].clone())));
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
            assert_eq!(lookup, Ok(Err(vec![text.to_owned()])));
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
        let lookup = resolve_bp1(&with_by_id_link(&[disk("vdb", 16, "")])).unwrap();
        assert!(matches!(lookup, Err(notes) if notes[0].contains("not proven")));
    }

    #[test]
    fn a_dangling_link_can_precede_its_device() {
        let lookup = resolve_bp1(&with_device_link(&[])).unwrap();
        assert!(matches!(lookup, Err(notes) if notes[0].contains("which does not exist")));
    }

    #[test]
    fn a_loop_device_is_accepted_by_its_complete_file_name_only() {
        let find = |file| resolve_bp1(&with_device_link(&[loop_device("loop3", 3, file)]));
        assert!(matches!(find("/images/bp1.img"), Ok(Ok(_))));
        for other in ["/images/bp12.img", "/images/xbp1.img", "/bp1/disk.img"] {
            assert!(find(other).unwrap_err().0.ends_with("the link is stale"), "{other}");
        }
    }

    #[test]
    fn a_backing_file_without_a_link_is_not_sufficient() {
        let lookup = resolve_bp1(&candidates(&[loop_device("loop3", 3, "/images/bp1.img")]));
        assert_eq!(lookup, Ok(Err(Vec::new())));
    }

    #[test]
    fn two_loop_devices_of_one_file_are_an_error() {
        let error = resolve_bp1(&with_device_link(&[
            loop_device("loop3", 3, "/images/bp1.img"),
            loop_device("loop4", 4, "/images/bp1.img"),
        ]));
        assert!(error.unwrap_err().0.starts_with("more than one device has serial bp1"));
    }

    #[test]
    fn a_serial_and_a_link_to_different_devices_are_an_error() {
        let error = resolve_bp1(&with_device_link(&[
            disk("vdb", 16, "bp1"),
            loop_device("loop3", 3, "/images/bp1.img"),
        ]));
        assert!(error.unwrap_err().0.starts_with("more than one device has serial bp1"));
    }

    #[test]
    fn two_namespaces_with_one_serial_are_an_error() {
        let namespaces = [disk("nvme1n1", 1, "bp1"), disk("nvme1n2", 2, "bp1")];
        let error = resolve_bp1(&candidates(&namespaces)).unwrap_err();
        assert!(error.to_string().contains("/dev/nvme1n2"), "{error}");
    }
}
