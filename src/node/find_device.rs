//! Resolves a disk to its block device. A device is accepted by its serial, never by name or by a link alone.

use std::time::Duration;

use tokio::time::Instant;

use super::Result;
use super::device_not_found;
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
type Unambiguous<T> = std::result::Result<T, String>;

/// Determines the disk's device.
fn resolve_device(serial: &Serial, candidates: &Candidates) -> Unambiguous<Lookup> {
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
            Err(format!("more than one device has serial {serial}: {devices}"))
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
fn linked_device<'a>(serial: &Serial, candidates: &'a Candidates) -> Unambiguous<Option<&'a Device>> {
    let link = candidates.device_dir_link.as_ref();
    match link.and_then(|link| Some((link, target(link, &candidates.devices)?))) {
        Some((_, device)) if device.backing_serial() == Some(serial.as_str()) => Ok(Some(device)),
        Some((link, device)) if device.backing_file.is_some() || device.serial.is_some() => Err(stale(link, device)),
        // A loop device without a backing file, before or after its use.
        Some(_) | None => Ok(None),
    }
}

/// Notes about a disk without a device. A link to another disk is an error, because it does not resolve itself; a
/// dangling link can precede its device.
fn notes(candidates: &Candidates) -> Unambiguous<Vec<String>> {
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

fn stale(link: &Link, device: &Device) -> String {
    let (link, identity) = (link.path.display(), device.identity());
    format!("{link} points to {device}, which is another disk ({identity}): the link is stale")
}

impl Observer {
    pub(super) async fn wait_for_device(&self, call: CallContext<'_>) -> Result<Device> {
        let operation = "finding its device";
        let start = Instant::now();
        // The error, with the devices that exist, must reach the caller in time.
        let time = call.deadline.remaining();
        let deadline = call.deadline.at_most(time - LIST_TIME.min(time / 4));
        let call = CallContext {
            operation,
            deadline,
            ..call
        };
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
            if !self.await_change(call, &mut changes).await {
                let devices = call.wrap(call.host.devices(quick())).await?;
                let existing = device_not_found::describe(&devices, notes);
                let serial = &call.volume.serial;
                let message = format!("no device with serial {serial} appeared by the deadline: {existing}");
                return Err(call.error(Failure::DeviceNotFound, message));
            }
        }
    }

    /// Waits briefly for the partitions of a device. The kernel adds them after the disk, and a disk may have none.
    pub(super) async fn wait_for_partitions(&self, call: CallContext<'_>, mut device: Device) -> Result<Device> {
        let operation = "finding its partition";
        let deadline = call.deadline.at_most(PARTITION_SCAN);
        let call = CallContext {
            operation,
            deadline,
            ..call
        };
        let mut changes = None;
        while device.partitions.is_empty() && self.await_change(call, &mut changes).await {
            if let Some(now) = self.lookup_device(call).await? {
                device = now;
            }
        }
        Ok(device)
    }

    /// Waits until the next lookup is due; false if the deadline leaves no time to wait. The first call subscribes to
    /// changes and returns immediately: only a lookup after that misses no change.
    pub(super) async fn await_change(&self, call: CallContext<'_>, changes: &mut Option<DeviceChanges>) -> bool {
        let Some(changes) = changes else {
            *changes = Some(call.host.changes(self.device_dir.is_some()));
            return true;
        };
        let remaining = call.deadline.remaining().saturating_sub(MARGIN);
        Deadline::after(remaining).bound(changes.next()).await.is_ok()
    }

    /// The volume's device, if it exists now.
    pub(super) async fn lookup_device(&self, call: CallContext<'_>) -> Result<Option<Device>> {
        Ok(self.lookup(call).await?.ok())
    }

    async fn lookup(&self, call: CallContext<'_>) -> Result<Lookup> {
        let candidates = self.search(call).await?;
        resolve_device(&call.volume.serial, &candidates).map_err(|reason| {
            let message = format!("its device cannot be determined: {reason}");
            call.error(Failure::DeviceAmbiguous, message)
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

    fn resolve_bp1(candidates: &Candidates) -> Unambiguous<Lookup> {
        resolve_device(&Serial::new("bp1").unwrap(), candidates)
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
        let error = "more than one device has serial bp1: ";
        for (candidates, devices) in [
            (
                candidates(&[disk("vdb", 16, "bp1"), disk("vdc", 32, "bp1")]),
                "/dev/vdb (254:16) with serial bp1, /dev/vdc (254:32) with serial bp1",
            ),
            // Two namespaces.
            (
                candidates(&[disk("nvme1n1", 1, "bp1"), disk("nvme1n2", 2, "bp1")]),
                "/dev/nvme1n1 (254:1) with serial bp1, /dev/nvme1n2 (254:2) with serial bp1",
            ),
            // Two loop devices of one file.
            (
                with_device_link(&[
                    loop_device("loop3", 3, "/images/bp1.img"),
                    loop_device("loop4", 4, "/images/bp1.img"),
                ]),
                "/dev/loop3 (254:3) with backing file /images/bp1.img, /dev/loop4 (254:4) with backing file \
                 /images/bp1.img",
            ),
            // A serial and a link.
            (
                with_device_link(&[disk("vdb", 16, "bp1"), loop_device("loop3", 3, "/images/bp1.img")]),
                "/dev/vdb (254:16) with serial bp1, /dev/loop3 (254:3) with backing file /images/bp1.img",
            ),
        ] {
            assert_eq!(resolve_bp1(&candidates), Err(format!("{error}{devices}")));
        }
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
            (candidates(&[small]), "no capacity yet"),
            (
                nodeless,
                "/dev/vdb is not its device node: check that /dev is the host's",
            ),
        ] {
            let text = format!("/dev/vdb (254:16) has the serial, but {text}");
            assert_eq!(resolve_bp1(&candidates), Ok(Err(vec![text])));
        }
    }

    #[test]
    fn a_link_to_a_disk_with_another_serial_is_stale() {
        assert_eq!(
            resolve_bp1(&with_by_id_link(&[disk("vdb", 16, "bp2")])).unwrap_err(),
            "disk/by-id/virtio-bp1 points to /dev/vdb (254:16), which is another disk (serial bp2): the link is stale"
        );
    }

    #[test]
    fn a_link_identifies_neither_a_disk_without_serial_nor_a_missing_one() {
        for (candidates, note) in [
            (with_by_id_link(&[disk("vdb", 16, "")]), "not proven"),
            // It can precede its device.
            (with_device_link(&[]), "which does not exist"),
        ] {
            let lookup = resolve_bp1(&candidates).unwrap();
            assert!(matches!(&lookup, Err(notes) if notes[0].contains(note)), "{lookup:?}");
        }
        // A backing file without a link is not sufficient.
        let lookup = resolve_bp1(&candidates(&[loop_device("loop3", 3, "/images/bp1.img")]));
        assert_eq!(lookup, Ok(Err(Vec::new())));
    }

    #[test]
    fn a_loop_device_is_accepted_by_its_complete_file_name_only() {
        let find = |file| resolve_bp1(&with_device_link(&[loop_device("loop3", 3, file)]));
        assert!(matches!(find("/images/bp1.img"), Ok(Ok(_))));
        for other in ["/images/bp12.img", "/images/xbp1.img", "/bp1/disk.img"] {
            assert!(find(other).unwrap_err().ends_with("the link is stale"), "{other}");
        }
    }
}
