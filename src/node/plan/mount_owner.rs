//! Determines which disk a mount at a volume's path belongs to: from the mount table and the device behind the mount,
//! without a search for the volume's device.

use super::PathState;
use crate::linux::{Device, Entry, Mount};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::node) enum Identity {
    Volume,
    Other,
    /// The device has not reported its serial, or only a part of it.
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::node) enum MountOwner {
    Volume,
    /// A filesystem that can no longer write: its device was removed, or it has shut down.
    Dead,
    /// The driver never creates such a mount.
    Foreign,
    OtherDisk,
    /// A device that exists, but cannot be identified now.
    Unidentified,
}

/// The disk of the volume may have been removed, or have reappeared with another name and number: its old mounts must
/// still be unmounted. But a mount of a device that exists belongs to that device. `device` is the device behind the
/// mount, or the parent device of its partition; `in_use` states whether the kernel uses it, as it does while its
/// filesystem is mounted.
pub(in crate::node) fn mount_owner(
    path_state: &PathState,
    mount: &Mount,
    device: Option<&Device>,
    identity: Identity,
    in_use: bool,
) -> MountOwner {
    let is_node = matches!(path_state.entry, Entry::BlockDevice(_));
    let Some(name) = device_name(path_state.entry, mount) else {
        return MountOwner::Foreign;
    };
    let Some(device) = device.filter(|device| !is_empty_loop(device)) else {
        return MountOwner::Dead;
    };
    let is_part = |name: &str| device.partitions.iter().any(|part| part.name == name);
    let is_own = device.name == name || !is_node && is_part(name);
    match identity {
        Identity::Volume if is_shut_down(path_state, mount) => MountOwner::Dead,
        Identity::Volume if is_own => MountOwner::Volume,
        // A device node that was removed from /dev is unusable, even if another device has its number now.
        _ if is_node && mount.is_removed_node() => MountOwner::Dead,
        // A filesystem that is not on the device: it is on a device that had its name or number before.
        Identity::Other if !is_node && !in_use => MountOwner::Dead,
        Identity::Unknown => MountOwner::Unidentified,
        Identity::Volume | Identity::Other => MountOwner::OtherDisk,
    }
}

/// Whether the filesystem is shut down permanently: xfs then fails even to stat its root, which is always in memory,
/// and ext4 has the option `shutdown`. Data that was not written is already lost.
fn is_shut_down(path_state: &PathState, mount: &Mount) -> bool {
    path_state.dead && mount.kind == "xfs" || mount.shows_shutdown()
}

/// The name of the mount's disk, if this driver may have mounted it: always by its node under
/// `/dev`, and only disks of kinds that have a serial or are the fake cloud's. The host's own filesystems have
/// other sources, such as `/dev/root`, `/dev/mapper/…`, or none.
pub(in crate::node) fn device_name(entry: Entry, mount: &Mount) -> Option<&str> {
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
    device.name.starts_with("loop") && device.size.0 == 0 && device.serial.is_none() && device.backing_file.is_none()
}
