//! Unstaging and unpublishing.

use super::common::{bad, occupied, occupied_by, places};
use super::{PathState, Plan, Refusal, Step};
use crate::host::{Device, Entry, Mount};
use crate::model::Serial;

/// What leaving a path saw.
#[derive(Debug)]
pub(in crate::node) struct LeaveSeen {
    /// The volume's device, if it is there.
    pub(in crate::node) device: Option<Device>,
    /// The serial that it was looked for by.
    pub(in crate::node) serial: Serial,
    /// All devices, where something is mounted at the path that is not of the volume's device.
    pub(in crate::node) devices: Vec<Device>,
    /// Whether the device that seems to be behind such a mount is in use by the kernel: a mounted
    /// filesystem uses its device.
    pub(in crate::node) claimed: bool,
    pub(in crate::node) path_state: PathState,
    /// Where else it is mounted; staging goes last.
    pub(in crate::node) others: Vec<Mount>,
}

/// Unstaging.
pub(in crate::node) fn unstage(seen: &LeaveSeen) -> Plan {
    if !seen.others.is_empty() {
        let device = seen.device.as_ref().map(ToString::to_string);
        return Err(Refusal::MountedElsewhere {
            device: device.unwrap_or_default(),
            at: places(&seen.others),
        });
    }
    let mut steps = leave(seen)?;
    // The directory goes last: removing it would take the filesystem off in other mount namespaces too.
    if seen.device.is_some() {
        let is_remove = |step: &Step| matches!(step, Step::Remove(_));
        let at = steps.iter().position(is_remove).unwrap_or(steps.len());
        steps.insert(at, Step::Release);
    }
    Ok(steps)
}

/// Unpublishing.
pub(in crate::node) fn unpublish(seen: &LeaveSeen) -> Plan {
    let mut steps = leave(seen)?;
    let Entry::Block(number) = seen.path_state.entry else {
        return Ok(steps);
    };
    if let Some(device) = seen.device.as_ref().filter(|d| d.number == number) {
        let mut after = vec![Step::Flush];
        if seen.others.is_empty() && device.read_only {
            after.push(Step::SetDeviceReadOnly(false));
        }
        let at = steps.len().min(1);
        steps.splice(at..at, after);
    }
    Ok(steps)
}

fn leave(seen: &LeaveSeen) -> Plan {
    let path_state = &seen.path_state;
    let path = path_state.path.clone();
    let Some(mount) = &path_state.mount else {
        return match path_state.entry {
            Entry::Missing => Ok(Vec::new()),
            Entry::Directory | Entry::File => Ok(vec![Step::Remove(path)]),
            other => Err(bad(path_state, other, "a directory or a file")),
        };
    };
    match whose(seen, mount) {
        Whose::Ours if is_shut_down(path_state, mount) => {
            Ok(vec![Step::Detach(path.clone()), Step::Remove(path)])
        }
        Whose::Ours => Ok(vec![Step::Unmount(path.clone()), Step::Remove(path)]),
        Whose::Gone => Ok(vec![Step::Detach(path.clone()), Step::Remove(path)]),
        Whose::Foreign => Err(occupied(path_state, mount)),
        Whose::Of(device) => Err(occupied_by(path_state, mount, device)),
    }
}

/// Whose a mount is.
enum Whose<'a> {
    Ours,
    /// That of a device which is gone: nothing can be written through it any more.
    Gone,
    /// Nothing that this driver can have mounted.
    Foreign,
    /// That of a device which is there, or of a partition of it.
    Of(&'a Device),
}

/// Whether the mount is of this device, as far as numbers and names tell.
pub(in crate::node) fn is_of(device: &Device, path_state: &PathState, mount: &Mount) -> bool {
    match path_state.entry {
        Entry::Block(number) => number == device.number,
        Entry::Missing | Entry::Directory | Entry::File | Entry::Symlink | Entry::Other => {
            mount.is_of(device)
        }
    }
}

/// Whether the filesystem has stopped for good: it answers nothing, not even of its root, which is always
/// in memory (xfs), or says so (ext4). What it had not written is lost already.
fn is_shut_down(path_state: &PathState, mount: &Mount) -> bool {
    path_state.dead && mount.kind == "xfs"
        || mount.super_options.split(',').any(|o| o == "shutdown")
}

/// The device of the volume may have another name and number by now, or be gone, and a mount that its
/// former appearance left must come off all the same; but what is mounted from a device that is there
/// is that device's.
fn whose<'a>(seen: &'a LeaveSeen, mount: &Mount) -> Whose<'a> {
    let path_state = &seen.path_state;
    if seen
        .device
        .as_ref()
        .is_some_and(|d| is_of(d, path_state, mount))
    {
        return Whose::Ours;
    }
    // The node of a device that is removed from /dev serves nobody, whatever has its number now.
    if matches!(path_state.entry, Entry::Block(_)) && mount.is_removed_node() {
        return Whose::Gone;
    }
    let Some(name) = source_name(path_state.entry, mount) else {
        return Whose::Foreign;
    };
    match behind(&seen.devices, path_state, mount) {
        None => Whose::Gone,
        Some(device) if is_empty_loop(device) => Whose::Gone,
        Some(device) if is_the_volume_s(device, name, seen) => Whose::Ours,
        Some(_) if !seen.claimed && !matches!(path_state.entry, Entry::Block(_)) => Whose::Gone,
        Some(device) => Whose::Of(device),
    }
}

/// The device that a mount is of, or of a partition of it, by its number or name.
pub(in crate::node) fn behind<'a>(
    devices: &'a [Device],
    path_state: &PathState,
    mount: &Mount,
) -> Option<&'a Device> {
    let name = source_name(path_state.entry, mount)?;
    let number = match path_state.entry {
        Entry::Block(number) => Some(number),
        _ if mount.kind == "btrfs" => None,
        _ => Some(mount.number),
    };
    devices.iter().find(|device| {
        Some(device.number) == number
            || device.name == name
            || device.partitions.iter().any(|partition| partition == name)
    })
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
