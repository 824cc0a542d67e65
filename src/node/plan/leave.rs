//! Unstaging and unpublishing.

use super::common::{bad, occupied, occupied_by, places};
use super::{Plan, Refusal, Spot, Step};
use crate::host::{Device, Entry, Mount};
use crate::model::Serial;

/// What leaving a path saw.
#[derive(Debug)]
pub(in crate::node) struct LeaveSeen {
    /// The volume's device, if it is there.
    pub(in crate::node) device: Option<Device>,
    /// The serial that it was looked for by.
    pub(in crate::node) serial: Serial,
    /// All devices, where the volume's is not there and something is mounted at the path.
    pub(in crate::node) devices: Vec<Device>,
    pub(in crate::node) spot: Spot,
    /// Where else it is mounted; staging goes last.
    pub(in crate::node) others: Vec<Mount>,
}

/// Unstaging.
pub(in crate::node) fn unstage(seen: &LeaveSeen) -> Plan {
    if seen.spot.mount.is_some() && !seen.others.is_empty() {
        let device = seen.device.as_ref().map(ToString::to_string);
        return Err(Refusal::MountedElsewhere {
            device: device.unwrap_or_default(),
            at: places(&seen.others),
        });
    }
    leave(seen)
}

/// Unpublishing.
pub(in crate::node) fn unpublish(seen: &LeaveSeen) -> Plan {
    let mut steps = leave(seen)?;
    let is_last = seen.others.is_empty() && matches!(seen.spot.entry, Entry::Block(_));
    if is_last && seen.device.as_ref().is_some_and(|device| device.read_only) {
        steps.insert(steps.len().min(1), Step::SetDeviceReadOnly(false));
    }
    Ok(steps)
}

fn leave(seen: &LeaveSeen) -> Plan {
    let spot = &seen.spot;
    let path = spot.path.clone();
    let Some(mount) = &spot.mount else {
        return match spot.entry {
            Entry::Missing => Ok(Vec::new()),
            Entry::Directory | Entry::File => Ok(vec![Step::Remove(path)]),
            other => Err(bad(spot, other, "a directory or a file")),
        };
    };
    let whose = match (&seen.device, spot.entry) {
        (Some(device), Entry::Block(number)) if number == device.number => Whose::Ours,
        (Some(_), Entry::Block(_)) => Whose::Foreign,
        (Some(device), _) if mount.is_of(device) => Whose::Ours,
        (Some(_), _) => Whose::Foreign,
        (None, _) => without_device(seen, mount),
    };
    match whose {
        Whose::Ours => Ok(vec![Step::Unmount(path.clone()), Step::Remove(path)]),
        Whose::Foreign => Err(occupied(spot, mount)),
        Whose::Of(device) => Err(occupied_by(spot, mount, device)),
    }
}

/// Whose a mount is.
enum Whose<'a> {
    Ours,
    /// Nothing that this driver can have mounted.
    Foreign,
    /// That of a device which is there, or of a partition of it.
    Of(&'a Device),
}

/// No device has the volume's serial. Its disk may have been torn out, and its mount must come off
/// all the same; but what is mounted from a device that is there is that device's.
fn without_device<'a>(seen: &'a LeaveSeen, mount: &Mount) -> Whose<'a> {
    let Some(name) = source_name(seen.spot.entry, mount) else {
        return Whose::Foreign;
    };
    let number = match seen.spot.entry {
        Entry::Block(number) => Some(number),
        _ if mount.kind == "btrfs" => None,
        _ => Some(mount.number),
    };
    let behind = seen.devices.iter().find(|device| {
        Some(device.number) == number
            || device.name == name
            || device.partitions.iter().any(|partition| partition == name)
    });
    match behind {
        None => Whose::Ours,
        Some(device) if is_empty_loop(device) => Whose::Ours,
        Some(device) if is_the_volume_s(device, name, seen) => Whose::Ours,
        Some(device) => Whose::Of(device),
    }
}

/// The name of the disk that a mount is from, if this driver may have mounted it: always by its
/// node's name under `/dev`, and only disks of the kinds that have a serial or a mark. A host's own
/// filesystems have other sources, such as `/dev/root`, `/dev/mapper/…`, or none.
fn source_name(entry: Entry, mount: &Mount) -> Option<&str> {
    const KINDS: [&str; 3] = ["vd", "nvme", "loop"];
    let shown = if matches!(entry, Entry::Block(_)) {
        mount.node_name()?
    } else if mount.number.major != 0 || mount.kind == "btrfs" {
        mount.source.to_str()?.strip_prefix("/dev/")?
    } else {
        return None;
    };
    let is_disk = KINDS.iter().any(|kind| shown.starts_with(kind)) && !shown.contains('/');
    is_disk.then_some(shown)
}

/// A loop device outlives the disk that was in it.
fn is_empty_loop(device: &Device) -> bool {
    device.name.starts_with("loop")
        && device.size.0 == 0
        && device.serial.is_none()
        && device.backing_file.is_none()
}

/// The device has the volume's serial or mark, and was not taken for it for another reason: it has
/// lost its capacity or its link.
fn is_the_volume_s(device: &Device, name: &str, seen: &LeaveSeen) -> bool {
    let identity = match &device.serial {
        Some(serial) => Some(serial.as_str()),
        None => device.mark(),
    };
    device.name == name && identity == Some(seen.serial.as_str())
}
