//! Tests of unpublishing and unstaging.

use super::*;

fn unmount_observation(entry: Entry, mount: Option<Mount>) -> UnmountObservation {
    UnmountObservation {
        device: Some(disk("vdb", 16, "bp1")),
        serial: Serial::new("bp1").unwrap(),
        devices: Vec::new(),
        backing_device_in_use: true,
        path_state: path_state("/target", entry, mount),
        other_mounts: Vec::new(),
    }
}

#[test]
fn only_mounts_of_the_volume_are_unmounted() {
    let own = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
    let other = mount_of(&disk("vdc", 32, "bp2"), "/target", "rw");
    let mut tmpfs = other.clone();
    tmpfs.number.major = 0;
    tmpfs.kind = "tmpfs".to_owned();
    let plan = |mount: &Mount, device: Option<Device>| {
        unpublish(&UnmountObservation {
            device,
            devices: vec![disk("vdc", 32, "bp2")],
            ..unmount_observation(Entry::Directory, Some(mount.clone()))
        })
    };
    let device = || Some(disk("vdb", 16, "bp1"));
    assert_eq!(
        step_names(&plan(&own, device()).unwrap()),
        ["unmount", "remove"]
    );
    assert!(plan(&other, device()).is_err());
    assert!(plan(&tmpfs, device()).is_err());
    // The mount of a removed disk is unmounted.
    assert!(plan(&own, None).is_ok());
    assert!(plan(&tmpfs, None).is_err());
}

/// Plans for `bp1`, which has no device, on a host with these devices.
fn plans_without_device(entry: Entry, mount: &Mount, devices: &[Device]) -> [Plan; 2] {
    let observed = UnmountObservation {
        device: None,
        devices: devices.to_vec(),
        ..unmount_observation(entry, Some(mount.clone()))
    };
    [unpublish(&observed), unstage(&observed)]
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

#[test]
fn a_mount_of_another_existing_device_is_kept() {
    let other = disk("vdc", 32, "bp2");
    let mut host = disk("vda", 0, "sys");
    host.serial = None;
    host.partitions = vec!["vda1".to_owned()];
    let mut boot = disk("vda1", 1, "sys");
    boot.serial = None;
    let devices = [host.clone(), other.clone()];
    for (device, owner) in [
        (&other, "/dev/vdc (254:32) with serial bp2"),
        (&host, "/dev/vda (254:0) with no serial"),
        (&boot, "/dev/vda (254:0) with no serial"),
    ] {
        for (entry, mount) in [
            (Entry::Directory, mount_of(device, "/target", "rw")),
            (Entry::Directory, btrfs_of(device)),
            (Entry::BlockDevice(device.number), node_of(device)),
        ] {
            for plan in plans_without_device(entry, &mount, &devices) {
                let error = plan.unwrap_err().to_string();
                assert!(error.contains(owner), "{error}");
            }
        }
    }
}

#[test]
fn a_mount_of_a_removed_device_is_unmounted() {
    let removed_device = disk("vdb", 16, "bp1");
    let devices = [disk("vda", 0, "sys"), disk("vdc", 32, "bp2")];
    let mut removed = node_of(&removed_device);
    removed.root = "/vdb//deleted".into();
    let mut emptied = disk("loop5", 5, "");
    emptied.size = Bytes(0);
    let devices = [devices, [emptied.clone(), disk("vdd", 48, "bp3")]].concat();
    for (entry, mount) in [
        (Entry::Directory, mount_of(&removed_device, "/target", "rw")),
        (Entry::Missing, mount_of(&removed_device, "/target", "rw")),
        (Entry::Directory, btrfs_of(&removed_device)),
        (Entry::BlockDevice(removed_device.number), removed),
        (Entry::BlockDevice(emptied.number), node_of(&emptied)),
    ] {
        for plan in plans_without_device(entry, &mount, &devices) {
            assert_eq!(
                step_names(&plan.unwrap()),
                ["unmount-dead", "remove"],
                "{mount:?}"
            );
        }
    }
}

#[test]
fn a_reused_device_number_belongs_to_the_new_disk() {
    let mount = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
    let successor = disk("vdc", 16, "bp2");
    for plan in plans_without_device(Entry::Directory, &mount, &[successor]) {
        assert!(plan.is_err());
    }
}

#[test]
fn a_device_without_capacity_or_symlink_is_identified_by_its_serial() {
    let mut empty = disk("vdb", 16, "bp1");
    empty.size = Bytes(0);
    let mut unlinked = disk("loop5", 5, "bp1");
    unlinked.serial = None;
    unlinked.backing_file = Some("/images/bp1.img".into());
    for device in [empty, unlinked] {
        let mount = mount_of(&device, "/target", "rw");
        for plan in plans_without_device(Entry::Directory, &mount, &[device]) {
            assert!(plan.is_ok());
        }
    }
}

#[test]
fn mounts_of_foreign_sources_are_kept() {
    for source in [
        "/dev/root",
        "/dev/mapper/root",
        "overlay",
        "/dev/sda1",
        "server:/x",
    ] {
        for kind in ["ext4", "btrfs"] {
            let mut mount = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
            mount.source = source.into();
            mount.kind = kind.to_owned();
            for plan in plans_without_device(Entry::Directory, &mount, &[]) {
                assert!(plan.is_err(), "{source} {kind}");
            }
        }
    }
}

#[test]
fn an_unmounted_directory_or_file_is_removed() {
    let plan = |entry| unpublish(&unmount_observation(entry, None));
    assert_eq!(plan(Entry::Missing), Ok(Vec::new()));
    for entry in [Entry::Directory, Entry::File] {
        assert_eq!(step_names(&plan(entry).unwrap()), ["remove"]);
    }
    for entry in [Entry::Symlink, Entry::Other] {
        assert!(plan(entry).is_err());
    }
}

#[test]
fn unpublishing_the_last_read_only_target_sets_the_device_writable() {
    let mut observed = unmount_observation(
        Entry::BlockDevice(disk("vdb", 16, "bp1").number),
        Some(mount_of(&disk("vdb", 16, "bp1"), "/target", "ro")),
    );
    let device = observed.device.as_mut().unwrap();
    device.read_only = true;
    assert_eq!(
        step_names(&unpublish(&observed).unwrap()),
        ["unmount", "flush", "setrw", "remove"]
    );
    observed.other_mounts = vec![mount_of(&disk("vdb", 16, "bp1"), "/other", "ro")];
    assert_eq!(
        step_names(&unpublish(&observed).unwrap()),
        ["unmount", "flush", "remove"]
    );
}

#[test]
fn unstage_fails_while_published() {
    let own = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
    let mut observed = unmount_observation(Entry::Directory, Some(own.clone()));
    assert_eq!(
        step_names(&unstage(&observed).unwrap()),
        ["unmount", "wait-released", "remove"]
    );
    observed.other_mounts = vec![own];
    assert!(matches!(
        unstage(&observed),
        Err(PlanError::MountedElsewhere { .. })
    ));
    // Also if nothing is mounted at the staging path.
    observed.path_state.mount = None;
    assert!(unstage(&observed).is_err());
}

#[test]
fn mounts_of_an_earlier_incarnation_of_the_device_are_unmounted() {
    let former = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
    let now = disk("vdd", 48, "bp1");
    let mut observed = UnmountObservation {
        device: Some(now.clone()),
        devices: vec![disk("vda", 0, "sys"), now],
        ..unmount_observation(Entry::Directory, Some(former))
    };
    assert_eq!(
        step_names(&unpublish(&observed).unwrap()),
        ["unmount-dead", "remove"]
    );
    assert_eq!(
        step_names(&unstage(&observed).unwrap()),
        ["unmount-dead", "wait-released", "remove"]
    );
    // Another disk now has its name and number: the mount belongs to that disk only if the kernel uses it.
    observed.devices.push(disk("vdb", 16, "bp2"));
    for plan in [unpublish, unstage] {
        assert!(plan(&observed).unwrap_err().to_string().contains("bp2"));
    }
    observed.backing_device_in_use = false;
    assert_eq!(
        step_names(&unpublish(&observed).unwrap()),
        ["unmount-dead", "remove"]
    );
    // Nothing is at the path, but the kernel may still use the device.
    observed.path_state = path_state("/target", Entry::Missing, None);
    assert_eq!(step_names(&unstage(&observed).unwrap()), ["wait-released"]);
}

#[test]
fn a_removed_device_node_is_unmounted_even_if_its_number_is_reused() {
    let successor = disk("vdb", 16, "bp2");
    let mut mount = node_of(&successor);
    let entry = Entry::BlockDevice(successor.number);
    let plan = |mount: &Mount| {
        unpublish(&UnmountObservation {
            device: None,
            devices: vec![successor.clone()],
            ..unmount_observation(entry, Some(mount.clone()))
        })
    };
    assert!(plan(&mount).is_err());
    mount.root = "/vdb//deleted".into();
    assert_eq!(
        step_names(&plan(&mount).unwrap()),
        ["unmount-dead", "remove"]
    );
}

#[test]
fn a_shut_down_filesystem_is_unmounted_lazily() {
    let device = disk("vdb", 16, "bp1");
    for (kind, options, dead, step) in [
        ("ext4", "rw", false, "unmount"),
        // An error of stat does not mean that ext4 is shut down.
        ("ext4", "rw", true, "unmount"),
        ("ext4", "ro,errors=remount-ro", false, "unmount"),
        ("ext4", "rw,shutdown", false, "unmount-dead"),
        ("xfs", "rw", false, "unmount"),
        ("xfs", "rw", true, "unmount-dead"),
    ] {
        let mut mount = mount_of(&device, "/target", "rw");
        mount.kind = kind.to_owned();
        mount.super_options = options.to_owned();
        let mut observed = unmount_observation(Entry::Missing, Some(mount));
        observed.path_state.dead = dead;
        assert_eq!(
            step_names(&unpublish(&observed).unwrap()),
            [step, "remove"],
            "{kind} {options} {dead}"
        );
    }
}
