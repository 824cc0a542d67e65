//! Tests of the ownership of mounts.

use super::*;
use crate::linux::fake::partition;

/// The owner of a mount for the volume `bp1`, on a host where this device is behind the mount.
fn owner(entry: Entry, mount: &Mount, device: Option<&Device>, in_use: bool) -> MountOwner {
    let path_state = path_state("/target", entry, Some(mount.clone()));
    owner_at(&path_state, device, in_use)
}

fn owner_at(path_state: &PathState, device: Option<&Device>, in_use: bool) -> MountOwner {
    let identity = match device {
        Some(device) if device.serial == Serial::new("bp1") => Identity::Volume,
        Some(device) if device.serial_pending => Identity::Unknown,
        _ => Identity::Other,
    };
    mount_owner(path_state, path_state.mount.as_ref().unwrap(), device, identity, in_use)
}

/// A bind mount of the device node.
fn node_of(device: &Device) -> Mount {
    let mut mount = mount_of(device, "/target", "rw");
    mount.kind = "devtmpfs".to_owned();
    mount.is_of_dev = true;
    mount.number.major = 0;
    mount.source = "udev".into();
    mount.root = Path::new("/").join(&device.name);
    mount
}

/// A btrfs mount of the device: its number is not that of a block device.
fn btrfs_of(device: &Device) -> Mount {
    let mut mount = mount_of(device, "/target", "rw");
    mount.kind = "btrfs".to_owned();
    mount.number.major = 0;
    mount
}

/// All kinds of mounts of a device.
fn mounts_of_device(device: &Device) -> [(Entry, Mount); 3] {
    [
        (Entry::Directory, mount_of(device, "/target", "rw")),
        (Entry::Directory, btrfs_of(device)),
        (Entry::BlockDevice(device.number), node_of(device)),
    ]
}

#[test]
fn a_mount_belongs_to_the_disk_with_the_serial_of_its_device() {
    let mut pending = disk("vdb", 16, "");
    pending.serial_pending = true;
    for (device, expected) in [
        (disk("vdb", 16, "bp1"), MountOwner::Volume),
        (disk("vdb", 16, "bp2"), MountOwner::OtherDisk),
        (disk("vdb", 16, ""), MountOwner::OtherDisk),
        (pending, MountOwner::Unidentified),
    ] {
        for (entry, mount) in mounts_of_device(&device) {
            let owner = owner(entry, &mount, Some(&device), true);
            assert_eq!(owner, expected, "{device:?} {mount:?}");
        }
    }
}

#[test]
fn a_mount_without_a_device_is_dead() {
    let removed_device = disk("vdb", 16, "bp1");
    for (entry, mount) in mounts_of_device(&removed_device) {
        assert_eq!(owner(entry, &mount, None, true), MountOwner::Dead);
    }
    let mut emptied = disk("loop5", 5, "");
    emptied.size = Bytes(0);
    for (entry, mount) in mounts_of_device(&emptied) {
        assert_eq!(owner(entry, &mount, Some(&emptied), true), MountOwner::Dead);
    }
}

#[test]
fn a_mount_of_another_disk_is_dead_if_the_kernel_does_not_use_that_disk() {
    let other = disk("vdb", 16, "bp2");
    for (entry, mount) in mounts_of_device(&other) {
        let expected = match entry {
            Entry::BlockDevice(_) => MountOwner::OtherDisk,
            _ => MountOwner::Dead,
        };
        assert_eq!(owner(entry, &mount, Some(&other), false), expected);
    }
}

#[test]
fn a_removed_device_node_is_dead_even_if_its_number_is_reused() {
    let successor = disk("vdb", 16, "bp2");
    let mut mount = node_of(&successor);
    mount.root = "/vdb//deleted".into();
    let entry = Entry::BlockDevice(successor.number);
    assert_eq!(owner(entry, &mount, Some(&successor), true), MountOwner::Dead);
}

#[test]
fn a_mount_of_a_partition_belongs_to_its_disk() {
    for (serial, expected) in [("bp1", MountOwner::Volume), ("bp2", MountOwner::OtherDisk)] {
        let mut whole = disk("vdb", 16, serial);
        whole.partitions = vec![partition(&whole)];
        let part = whole.as_partition(&whole.partitions[0]);
        let mount = mount_of(&part, "/target", "rw");
        let owner = owner(Entry::Directory, &mount, Some(&whole), true);
        assert_eq!(owner, expected);
    }
}

#[test]
fn mounts_of_other_sources_are_foreign() {
    let mut tmpfs = mount_of(&disk("vdc", 32, "bp2"), "/target", "rw");
    tmpfs.number.major = 0;
    tmpfs.kind = "tmpfs".to_owned();
    assert_eq!(owner(Entry::Directory, &tmpfs, None, true), MountOwner::Foreign);
    for source in ["/dev/root", "/dev/mapper/root", "overlay", "/dev/sda1", "server:/x"] {
        for kind in ["ext4", "btrfs"] {
            let mut mount = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
            mount.source = source.into();
            mount.kind = kind.to_owned();
            let owner = owner(Entry::Directory, &mount, None, true);
            assert_eq!(owner, MountOwner::Foreign, "{source} {kind}");
        }
    }
}

#[test]
fn a_filesystem_that_has_shut_down_is_dead() {
    let device = disk("vdb", 16, "bp1");
    for (kind, options, dead, expected) in [
        ("ext4", "rw", false, MountOwner::Volume),
        // An error of stat does not mean that ext4 is shut down.
        ("ext4", "rw", true, MountOwner::Volume),
        ("ext4", "ro,errors=remount-ro", false, MountOwner::Volume),
        ("ext4", "rw,shutdown", false, MountOwner::Dead),
        ("xfs", "rw", false, MountOwner::Volume),
        ("xfs", "rw", true, MountOwner::Dead),
    ] {
        let mut mount = mount_of(&device, "/target", "rw");
        mount.kind = kind.to_owned();
        mount.super_options = options.to_owned();
        let mut path_state = path_state("/target", Entry::Missing, Some(mount));
        path_state.dead = dead;
        let owner = owner_at(&path_state, Some(&device), true);
        assert_eq!(owner, expected, "{kind} {options} {dead}");
    }
}
