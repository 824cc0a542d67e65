//! Plans unpublishing and unstaging.

use super::common::{mount_points, path_in_use, path_in_use_by, wrong_path_type};
use super::{PathState, Plan, PlanError, Step};
use crate::host::{Device, Entry, Mount};
use crate::model::Serial;

/// The state of the host before unpublishing or unstaging.
#[derive(Debug)]
pub(in crate::node) struct UnmountObservation {
    /// The volume's device. `None` if it does not exist.
    pub(in crate::node) device: Option<Device>,
    pub(in crate::node) serial: Serial,
    /// All devices, if the mount at the path is not a mount of the volume's device. Otherwise empty.
    pub(in crate::node) devices: Vec<Device>,
    /// Whether the kernel uses the backing device of such a mount, as it does while its filesystem is mounted.
    pub(in crate::node) backing_device_in_use: bool,
    pub(in crate::node) path_state: PathState,
    /// Mounts of the volume at other paths.
    pub(in crate::node) other_mounts: Vec<Mount>,
}

pub(in crate::node) fn unstage(observed: &UnmountObservation) -> Plan {
    if !observed.other_mounts.is_empty() {
        let device = observed.device.as_ref().map(ToString::to_string);
        return Err(PlanError::MountedElsewhere {
            device: device.unwrap_or_default(),
            paths: mount_points(&observed.other_mounts),
        });
    }
    let mut steps = unmount(observed)?;
    // The directory is removed last: its removal would unmount the filesystem in other mount namespaces too.
    if observed.device.is_some() {
        let is_remove = |step: &Step| matches!(step, Step::Remove(_));
        let at = steps.iter().position(is_remove).unwrap_or(steps.len());
        steps.insert(at, Step::WaitReleased);
    }
    Ok(steps)
}

pub(in crate::node) fn unpublish(observed: &UnmountObservation) -> Plan {
    let mut steps = unmount(observed)?;
    let Entry::BlockDevice(number) = observed.path_state.entry else {
        return Ok(steps);
    };
    if let Some(device) = observed.device.as_ref().filter(|d| d.number == number) {
        let mut after = vec![Step::Flush];
        if observed.other_mounts.is_empty() && device.read_only {
            after.push(Step::SetDeviceReadOnly(false));
        }
        let at = steps.len().min(1);
        steps.splice(at..at, after);
    }
    Ok(steps)
}

fn unmount(observed: &UnmountObservation) -> Plan {
    let path_state = &observed.path_state;
    let path = path_state.path.clone();
    let Some(mount) = &path_state.mount else {
        return match path_state.entry {
            Entry::Missing => Ok(Vec::new()),
            Entry::Directory | Entry::File => Ok(vec![Step::Remove(path)]),
            other => Err(wrong_path_type(path_state, other, "a directory or a file")),
        };
    };
    match mount_owner(observed, mount) {
        MountOwner::Volume if is_shut_down(path_state, mount) => {
            Ok(vec![Step::UnmountDead(path.clone()), Step::Remove(path)])
        }
        MountOwner::Volume => Ok(vec![Step::Unmount(path.clone()), Step::Remove(path)]),
        MountOwner::RemovedDevice => Ok(vec![Step::UnmountDead(path.clone()), Step::Remove(path)]),
        MountOwner::Foreign => Err(path_in_use(path_state, mount)),
        MountOwner::Device(device) => Err(path_in_use_by(path_state, mount, device)),
    }
}

/// The owner of a mount.
enum MountOwner<'a> {
    Volume,
    /// A device that no longer exists: nothing can be written through the mount.
    RemovedDevice,
    /// The driver never creates such a mount.
    Foreign,
    /// Another device that exists, or a partition of it.
    Device(&'a Device),
}

/// Whether the mount is a mount of this device or of its node, by its number and name.
pub(in crate::node) fn is_mount_of(device: &Device, path_state: &PathState, mount: &Mount) -> bool {
    match path_state.entry {
        Entry::BlockDevice(number) => number == device.number,
        Entry::Missing | Entry::Directory | Entry::File | Entry::Symlink | Entry::Other => {
            mount.is_of(device)
        }
    }
}

/// Whether the filesystem is shut down permanently: xfs then fails even to stat its root, which is always in memory,
/// and ext4 has the option `shutdown`. Data that was not written is already lost.
fn is_shut_down(path_state: &PathState, mount: &Mount) -> bool {
    path_state.dead && mount.kind == "xfs"
        || mount.super_options.split(',').any(|o| o == "shutdown")
}

/// Determines the owner of the mount. If the volume's device was removed, or reappeared with another name and number,
/// its old mounts must still be unmounted; but a mount of a device that exists belongs to that device.
fn mount_owner<'a>(observed: &'a UnmountObservation, mount: &Mount) -> MountOwner<'a> {
    let path_state = &observed.path_state;
    if observed
        .device
        .as_ref()
        .is_some_and(|d| is_mount_of(d, path_state, mount))
    {
        return MountOwner::Volume;
    }
    // A device node that was removed from /dev is unusable, even if another device has its number now.
    if matches!(path_state.entry, Entry::BlockDevice(_)) && mount.is_removed_node() {
        return MountOwner::RemovedDevice;
    }
    let Some(name) = device_name(path_state.entry, mount) else {
        return MountOwner::Foreign;
    };
    match backing_device(&observed.devices, path_state, mount) {
        None => MountOwner::RemovedDevice,
        Some(device) if is_empty_loop(device) => MountOwner::RemovedDevice,
        Some(device) if has_serial(device, name, observed) => MountOwner::Volume,
        Some(_)
            if !observed.backing_device_in_use
                && !matches!(path_state.entry, Entry::BlockDevice(_)) =>
        {
            MountOwner::RemovedDevice
        }
        Some(device) => MountOwner::Device(device),
    }
}

/// The device, or the parent device of the partition, that a mount is from, by its number or name.
pub(in crate::node) fn backing_device<'a>(
    devices: &'a [Device],
    path_state: &PathState,
    mount: &Mount,
) -> Option<&'a Device> {
    let name = device_name(path_state.entry, mount)?;
    let number = match path_state.entry {
        Entry::BlockDevice(number) => Some(number),
        _ if mount.kind == "btrfs" => None,
        _ => Some(mount.number),
    };
    devices.iter().find(|device| {
        Some(device.number) == number
            || device.name == name
            || device.partitions.iter().any(|partition| partition == name)
    })
}

/// The name of the mount's disk, if this driver may have mounted it: always by its node under
/// `/dev`, and only disks of kinds that have a serial or a mapping. The host's own filesystems have
/// other sources, such as `/dev/root`, `/dev/mapper/…`, or none.
fn device_name(entry: Entry, mount: &Mount) -> Option<&str> {
    const KINDS: [&str; 3] = ["vd", "nvme", "loop"];
    let name = if matches!(entry, Entry::BlockDevice(_)) {
        mount.node_name()?
    } else if mount.number.major != 0 || mount.kind == "btrfs" {
        mount.source.to_str()?.strip_prefix("/dev/")?
    } else {
        return None;
    };
    let is_disk = KINDS.iter().any(|kind| name.starts_with(kind)) && !name.contains('/');
    is_disk.then_some(name)
}

/// A loop device still exists after its disk is detached from it.
fn is_empty_loop(device: &Device) -> bool {
    device.name.starts_with("loop")
        && device.size.0 == 0
        && device.serial.is_none()
        && device.backing_file.is_none()
}

/// Whether the device has the volume's serial or mapping. It was not found as the volume's device for another reason:
/// its capacity is 0 or its symlink is missing.
fn has_serial(device: &Device, name: &str, observed: &UnmountObservation) -> bool {
    let identity = match &device.serial {
        Some(serial) => Some(serial.as_str()),
        None => device.backing_serial(),
    };
    device.name == name && identity == Some(observed.serial.as_str())
}
