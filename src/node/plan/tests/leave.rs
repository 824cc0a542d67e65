//! Unpublishing and unstaging.

use super::*;

fn leaving(entry: Entry, mount: Option<Mount>) -> LeaveSeen {
    LeaveSeen {
        device: Some(disk("vdb", 16, "bp1")),
        serial: Serial::new("bp1").unwrap(),
        devices: Vec::new(),
        claimed: true,
        path_state: path_state("/target", entry, mount),
        others: Vec::new(),
    }
}

#[test]
fn only_what_is_the_volume_s_is_unmounted() {
    let own = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
    let other = mount_of(&disk("vdc", 32, "bp2"), "/target", "rw");
    let mut tmpfs = other.clone();
    tmpfs.number.major = 0;
    tmpfs.kind = "tmpfs".to_owned();
    let plan = |mount: &Mount, device: Option<Device>| {
        unpublish(&LeaveSeen {
            device,
            devices: vec![disk("vdc", 32, "bp2")],
            ..leaving(Entry::Directory, Some(mount.clone()))
        })
    };
    let device = || Some(disk("vdb", 16, "bp1"));
    assert_eq!(names(&plan(&own, device()).unwrap()), ["unmount", "remove"]);
    assert!(plan(&other, device()).is_err());
    assert!(plan(&tmpfs, device()).is_err());
    // The disk was torn out: its mount must come off all the same.
    assert!(plan(&own, None).is_ok());
    assert!(plan(&tmpfs, None).is_err());
}

/// Leaving a mount by the id of `bp1`, which no device answers to, on a host with these devices.
fn leaving_by_a_strange_id(entry: Entry, mount: &Mount, devices: &[Device]) -> [Plan; 2] {
    let seen = LeaveSeen {
        device: None,
        devices: devices.to_vec(),
        ..leaving(entry, Some(mount.clone()))
    };
    [unpublish(&seen), unstage(&seen)]
}

/// A mount of the node of this device.
fn node_of(device: &Device) -> Mount {
    let mut mount = mount_of(device, "/target", "rw");
    mount.kind = "devtmpfs".to_owned();
    mount.is_of_dev = true;
    mount.number.major = 0;
    mount.source = "udev".into();
    mount.root = Path::new("/").join(&device.name);
    mount
}

/// A btrfs mount of this device: its number is none of a block device.
fn btrfs_of(device: &Device) -> Mount {
    let mut mount = mount_of(device, "/target", "rw");
    mount.kind = "btrfs".to_owned();
    mount.number.major = 0;
    mount
}

#[test]
fn what_is_mounted_from_a_device_that_is_there_is_that_device_s() {
    let other = disk("vdc", 32, "bp2");
    let mut host = disk("vda", 0, "sys");
    host.serial = None;
    host.partitions = vec!["vda1".to_owned()];
    let mut boot = disk("vda1", 1, "sys");
    boot.serial = None;
    let devices = [host.clone(), other.clone()];
    for (device, whose) in [
        (&other, "/dev/vdc (254:32) with serial bp2"),
        (&host, "/dev/vda (254:0) with no serial"),
        (&boot, "/dev/vda (254:0) with no serial"),
    ] {
        for (entry, mount) in [
            (Entry::Directory, mount_of(device, "/target", "rw")),
            (Entry::Directory, btrfs_of(device)),
            (Entry::Block(device.number), node_of(device)),
        ] {
            for plan in leaving_by_a_strange_id(entry, &mount, &devices) {
                let refused = plan.unwrap_err().to_string();
                assert!(refused.contains(whose), "{refused}");
            }
        }
    }
}

#[test]
fn what_is_mounted_from_a_device_that_is_gone_comes_off() {
    let gone = disk("vdb", 16, "bp1");
    let devices = [disk("vda", 0, "sys"), disk("vdc", 32, "bp2")];
    let mut removed = node_of(&gone);
    removed.root = "/vdb//deleted".into();
    let mut emptied = disk("loop5", 5, "");
    emptied.size = Bytes(0);
    let devices = [devices, [emptied.clone(), disk("vdd", 48, "bp3")]].concat();
    for (entry, mount) in [
        (Entry::Directory, mount_of(&gone, "/target", "rw")),
        (Entry::Missing, mount_of(&gone, "/target", "rw")),
        (Entry::Directory, btrfs_of(&gone)),
        (Entry::Block(gone.number), removed),
        (Entry::Block(emptied.number), node_of(&emptied)),
    ] {
        for plan in leaving_by_a_strange_id(entry, &mount, &devices) {
            assert_eq!(names(&plan.unwrap()), ["detach", "remove"], "{mount:?}");
        }
    }
}

#[test]
fn a_number_that_another_disk_has_now_is_that_disk_s() {
    let mount = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
    let heir = disk("vdc", 16, "bp2");
    for plan in leaving_by_a_strange_id(Entry::Directory, &mount, &[heir]) {
        assert!(plan.is_err());
    }
}

#[test]
fn a_disk_that_lost_its_capacity_or_its_link_is_still_the_volume_s() {
    let mut empty = disk("vdb", 16, "bp1");
    empty.size = Bytes(0);
    let mut unlinked = disk("loop5", 5, "bp1");
    unlinked.serial = None;
    unlinked.backing_file = Some("/images/bp1.img".into());
    for device in [empty, unlinked] {
        let mount = mount_of(&device, "/target", "rw");
        for plan in leaving_by_a_strange_id(Entry::Directory, &mount, &[device]) {
            assert!(plan.is_ok());
        }
    }
}

#[test]
fn what_the_driver_never_mounts_is_left_alone_though_no_device_is_seen_behind_it() {
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
            for plan in leaving_by_a_strange_id(Entry::Directory, &mount, &[]) {
                assert!(plan.is_err(), "{source} {kind}");
            }
        }
    }
}

#[test]
fn a_path_that_is_not_mounted_is_removed_if_it_can_be_ours() {
    let plan = |entry| unpublish(&leaving(entry, None));
    assert_eq!(plan(Entry::Missing), Ok(Vec::new()));
    for entry in [Entry::Directory, Entry::File] {
        assert_eq!(names(&plan(entry).unwrap()), ["remove"]);
    }
    for entry in [Entry::Symlink, Entry::Other] {
        assert!(plan(entry).is_err());
    }
}

#[test]
fn the_last_read_only_target_gives_the_device_back_writable() {
    let mut seen = leaving(
        Entry::Block(disk("vdb", 16, "bp1").number),
        Some(mount_of(&disk("vdb", 16, "bp1"), "/target", "ro")),
    );
    let device = seen.device.as_mut().unwrap();
    device.read_only = true;
    assert_eq!(
        names(&unpublish(&seen).unwrap()),
        ["unmount", "flush", "setrw", "remove"]
    );
    seen.others = vec![mount_of(&disk("vdb", 16, "bp1"), "/other", "ro")];
    assert_eq!(
        names(&unpublish(&seen).unwrap()),
        ["unmount", "flush", "remove"]
    );
}

#[test]
fn what_is_still_published_is_not_unstaged() {
    let own = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
    let mut seen = leaving(Entry::Directory, Some(own.clone()));
    assert_eq!(
        names(&unstage(&seen).unwrap()),
        ["unmount", "release", "remove"]
    );
    seen.others = vec![own];
    assert!(matches!(
        unstage(&seen),
        Err(Refusal::MountedElsewhere { .. })
    ));
    // Nor where the staging path itself was cleared already.
    seen.path_state.mount = None;
    assert!(unstage(&seen).is_err());
}

#[test]
fn what_a_former_appearance_of_the_disk_left_comes_off() {
    let former = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
    let now = disk("vdd", 48, "bp1");
    let mut seen = LeaveSeen {
        device: Some(now.clone()),
        devices: vec![disk("vda", 0, "sys"), now],
        ..leaving(Entry::Directory, Some(former))
    };
    assert_eq!(names(&unpublish(&seen).unwrap()), ["detach", "remove"]);
    assert_eq!(
        names(&unstage(&seen).unwrap()),
        ["detach", "release", "remove"]
    );
    // Its name and number belong to another disk by now: whose the mount is shows in whether the kernel
    // uses that disk.
    seen.devices.push(disk("vdb", 16, "bp2"));
    for plan in [unpublish, unstage] {
        assert!(plan(&seen).unwrap_err().to_string().contains("bp2"));
    }
    seen.claimed = false;
    assert_eq!(names(&unpublish(&seen).unwrap()), ["detach", "remove"]);
    // The path is clear already, but the device has not been waited for.
    seen.path_state = path_state("/target", Entry::Missing, None);
    assert_eq!(names(&unstage(&seen).unwrap()), ["release"]);
}

#[test]
fn a_node_that_is_removed_comes_off_whatever_has_its_number_now() {
    let heir = disk("vdb", 16, "bp2");
    let mut mount = node_of(&heir);
    let entry = Entry::Block(heir.number);
    let plan = |mount: &Mount| {
        unpublish(&LeaveSeen {
            device: None,
            devices: vec![heir.clone()],
            ..leaving(entry, Some(mount.clone()))
        })
    };
    assert!(plan(&mount).is_err());
    mount.root = "/vdb//deleted".into();
    assert_eq!(names(&plan(&mount).unwrap()), ["detach", "remove"]);
}

#[test]
fn only_a_filesystem_that_has_stopped_for_good_is_detached_from_a_device_that_is_there() {
    let device = disk("vdb", 16, "bp1");
    for (kind, options, dead, step) in [
        ("ext4", "rw", false, "unmount"),
        // The root of an ext4 is in memory: an error means something else than a stop.
        ("ext4", "rw", true, "unmount"),
        ("ext4", "ro,errors=remount-ro", false, "unmount"),
        ("ext4", "rw,shutdown", false, "detach"),
        ("xfs", "rw", false, "unmount"),
        ("xfs", "rw", true, "detach"),
    ] {
        let mut mount = mount_of(&device, "/target", "rw");
        mount.kind = kind.to_owned();
        mount.super_options = options.to_owned();
        let mut seen = leaving(Entry::Missing, Some(mount));
        seen.path_state.dead = dead;
        assert_eq!(
            names(&unpublish(&seen).unwrap()),
            [step, "remove"],
            "{kind} {options} {dead}"
        );
    }
}
