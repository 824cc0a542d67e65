use std::path::Path;

use super::*;
use crate::host::fake::{disk, mount_of};
use crate::host::{Content, Device, Entry, Mount};
use crate::model::Filesystem::{Btrfs, Ext4, Xfs};
use crate::model::{Bytes, Filesystem, MountFlags, Serial};

const GIB: u64 = 1 << 30;

fn spot(path: &str, entry: Entry, mount: Option<Mount>) -> Spot {
    Spot {
        path: path.into(),
        entry,
        mount,
    }
}

fn ext4() -> Access {
    mounted(Ext4)
}

fn mounted(filesystem: Filesystem) -> Access {
    Access::Mount {
        filesystem,
        flags: MountFlags::default(),
    }
}

fn seen(content: Content) -> StageSeen {
    StageSeen {
        device: disk("vdb", 16, "bp1"),
        staging: spot("/staging", Entry::Directory, None),
        elsewhere: Vec::new(),
        content: Some(content),
        mounted_size: None,
    }
}

fn holds(filesystem: Filesystem, bytes: u64) -> Content {
    Content::Filesystem {
        filesystem,
        size: Some(Bytes(bytes)),
    }
}

fn wanted(access: &Access, read_only: bool) -> Wanted<'_> {
    Wanted {
        access,
        read_only,
        locked: false,
    }
}

/// The steps' names: enough to see what is done in which order.
fn names(steps: &[Step]) -> Vec<&'static str> {
    steps
        .iter()
        .map(|step| match step {
            Step::SetDeviceReadOnly(true) => "setro",
            Step::SetDeviceReadOnly(false) => "setrw",
            Step::Format(_) => "format",
            Step::Check(_) => "check",
            Step::GrowUnmounted(_) => "grow-unmounted",
            Step::MakeDirectory(_) => "mkdir",
            Step::MakeFile(_) => "touch",
            Step::Mount {
                read_only: true, ..
            } => "mount-ro",
            Step::Mount { .. } => "mount",
            Step::GrowMounted { .. } => "grow-mounted",
            Step::Bind { .. } => "bind",
            Step::BindDevice(_) => "bind-device",
            Step::RemountReadOnly(_) => "remount-ro",
            Step::Unmount(_) => "unmount",
            Step::Remove(_) => "remove",
        })
        .collect()
}

#[test]
fn what_is_done_to_a_free_disk_follows_from_its_content() {
    for (content, access, read_only, steps) in [
        (Content::Blank, ext4(), false, &["format", "mount"][..]),
        (holds(Ext4, GIB), ext4(), false, &["check", "mount"]),
        (
            holds(Ext4, GIB / 2),
            ext4(),
            false,
            &["check", "grow-unmounted", "mount"],
        ),
        (
            holds(Xfs, GIB / 2),
            mounted(Xfs),
            false,
            &["mount", "grow-mounted"],
        ),
        // Nothing may be written: neither checked nor grown.
        (holds(Ext4, GIB / 2), ext4(), true, &["mount-ro"]),
        (holds(Btrfs, GIB / 2), mounted(Btrfs), true, &["mount-ro"]),
    ] {
        let planned = stage(wanted(&access, read_only), &seen(content.clone())).unwrap();
        assert_eq!(names(&planned), steps, "{content} {read_only}");
    }
}

#[test]
fn only_a_blank_disk_is_ever_formatted() {
    let foreign = Content::Foreign {
        what: "a gpt partition table".to_owned(),
    };
    for content in [Some(foreign), Some(holds(Xfs, GIB)), None] {
        let seen = StageSeen {
            content,
            ..seen(Content::Blank)
        };
        for read_only in [false, true] {
            assert!(stage(wanted(&ext4(), read_only), &seen).is_err());
        }
    }
    let refused = stage(wanted(&ext4(), true), &seen(Content::Blank)).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "/dev/vdb (254:16) is blank, and read-only use never formats a disk"
    );
}

#[test]
fn another_filesystem_is_refused_with_both_names() {
    let refused = stage(wanted(&ext4(), false), &seen(holds(Xfs, GIB))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "/dev/vdb (254:16) has xfs, but ext4 was asked for"
    );
}

#[test]
fn a_disk_that_somebody_uses_is_refused_whatever_is_on_it() {
    let mut partitioned = seen(Content::Blank);
    partitioned.device.partitions = vec!["vdb1".to_owned()];
    let mut held = seen(Content::Blank);
    held.device.holders = vec!["dm-0".to_owned()];
    let mut elsewhere = seen(Content::Blank);
    elsewhere.elsewhere = vec![mount_of(&elsewhere.device, "/mnt", "rw")];
    for (seen, word) in [
        (partitioned, "vdb1"),
        (held, "dm-0"),
        (elsewhere, "mounted at /mnt"),
    ] {
        let refused = stage(wanted(&ext4(), false), &seen).unwrap_err();
        assert!(refused.to_string().contains(word), "{refused}");
    }
}

#[test]
fn staging_again_does_nothing_where_it_fits_and_is_refused_where_not() {
    let device = disk("vdb", 16, "bp1");
    let staged = |options: &str| StageSeen {
        staging: spot(
            "/staging",
            Entry::Directory,
            Some(mount_of(&device, "/staging", options)),
        ),
        content: None,
        ..seen(Content::Blank)
    };
    for (access, read_only, options) in [
        (ext4(), false, "rw"),
        (ext4(), true, "ro"),
        (ext4(), true, "ro,noatime"),
    ] {
        let again = stage(wanted(&access, read_only), &staged(options));
        assert_eq!(again, Ok(Vec::new()), "{options}");
    }
    for (access, read_only, options) in [
        (ext4(), true, "rw"),
        (ext4(), false, "ro"),
        (mounted(Xfs), false, "rw"),
        (Access::Block, false, "rw"),
    ] {
        let refused = stage(wanted(&access, read_only), &staged(options)).unwrap_err();
        assert!(matches!(refused, Refusal::Incompatible { .. }), "{refused}");
    }
    let other = StageSeen {
        device: disk("vdc", 32, "bp2"),
        ..staged("rw")
    };
    let refused = stage(wanted(&ext4(), false), &other).unwrap_err();
    assert!(matches!(refused, Refusal::Occupied { .. }), "{refused}");
}

#[test]
fn a_growth_that_an_earlier_call_did_not_reach_is_made_up_for() {
    let device = disk("vdb", 16, "bp1");
    let mut mount = mount_of(&device, "/staging", "rw");
    mount.kind = "xfs".to_owned();
    let seen = StageSeen {
        staging: spot("/staging", Entry::Directory, Some(mount)),
        content: None,
        mounted_size: Some(Bytes(GIB / 2)),
        ..seen(Content::Blank)
    };
    let planned = stage(wanted(&mounted(Xfs), false), &seen).unwrap();
    assert_eq!(names(&planned), ["grow-mounted"]);
}

#[test]
fn a_staging_path_that_is_no_directory_is_refused() {
    for entry in [Entry::Symlink, Entry::File, Entry::Other] {
        let seen = StageSeen {
            staging: spot("/staging", entry, None),
            ..seen(Content::Blank)
        };
        let refused = stage(wanted(&ext4(), false), &seen).unwrap_err();
        assert!(matches!(refused, Refusal::BadTarget { .. }), "{refused}");
    }
}

fn published(target: Spot, staged: Option<&str>) -> PublishSeen {
    let device = disk("vdb", 16, "bp1");
    PublishSeen {
        staging: spot(
            "/staging",
            Entry::Directory,
            staged.map(|options| mount_of(&device, "/staging", options)),
        ),
        device,
        target,
        others: Vec::new(),
    }
}

#[test]
fn a_target_is_made_bound_and_made_read_only_where_asked() {
    let seen = published(spot("/target", Entry::Missing, None), Some("rw"));
    let plan = |read_only| publish(wanted(&ext4(), read_only), false, &seen).unwrap();
    assert_eq!(names(&plan(false)), ["mkdir", "bind"]);
    assert_eq!(names(&plan(true)), ["mkdir", "bind", "remount-ro"]);
}

#[test]
fn publishing_what_is_not_staged_so_is_refused() {
    let target = || spot("/target", Entry::Missing, None);
    let not_staged = publish(wanted(&ext4(), false), false, &published(target(), None));
    assert!(matches!(not_staged, Err(Refusal::NotStaged { .. })));
    let staged_ro = published(target(), Some("ro"));
    let writable = publish(wanted(&ext4(), false), false, &staged_ro);
    assert!(matches!(writable, Err(Refusal::StagedReadOnly { .. })));
    assert!(publish(wanted(&ext4(), true), false, &staged_ro).is_ok());
}

#[test]
fn a_read_only_target_that_was_left_writable_half_way_is_made_read_only() {
    let device = disk("vdb", 16, "bp1");
    let at = |options| {
        let mount = mount_of(&device, "/target", options);
        published(spot("/target", Entry::Directory, Some(mount)), Some("rw"))
    };
    let plan = |options, read_only| publish(wanted(&ext4(), read_only), false, &at(options));
    assert_eq!(names(&plan("rw", true).unwrap()), ["remount-ro"]);
    assert_eq!(plan("rw", false), Ok(Vec::new()));
    assert_eq!(plan("ro", true), Ok(Vec::new()));
    assert!(matches!(
        plan("ro", false),
        Err(Refusal::Incompatible { .. })
    ));
}

#[test]
fn a_device_is_published_one_way_at_a_time() {
    let target = spot("/target", Entry::Missing, None);
    let mut seen = published(target, None);
    let plan = |seen: &PublishSeen, ro| publish(wanted(&Access::Block, ro), false, seen);
    assert_eq!(
        names(&plan(&seen, true).unwrap()),
        ["setro", "touch", "bind-device", "remount-ro"]
    );
    assert_eq!(
        names(&plan(&seen, false).unwrap()),
        ["touch", "bind-device"]
    );
    seen.others = vec![mount_of(&seen.device, "/other", "rw")];
    assert!(matches!(
        plan(&seen, true),
        Err(Refusal::MixedAccess { .. })
    ));
    assert!(plan(&seen, false).is_ok());
}

fn leaving(entry: Entry, mount: Option<Mount>) -> LeaveSeen {
    LeaveSeen {
        device: Some(disk("vdb", 16, "bp1")),
        serial: Serial::new("bp1").unwrap(),
        devices: Vec::new(),
        spot: spot("/target", entry, mount),
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
            assert_eq!(names(&plan.unwrap()), ["unmount", "remove"], "{mount:?}");
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
        ["unmount", "setrw", "remove"]
    );
    seen.others = vec![mount_of(&disk("vdb", 16, "bp1"), "/other", "ro")];
    assert_eq!(names(&unpublish(&seen).unwrap()), ["unmount", "remove"]);
}

#[test]
fn what_is_still_published_is_not_unstaged() {
    let own = mount_of(&disk("vdb", 16, "bp1"), "/target", "rw");
    let mut seen = leaving(Entry::Directory, Some(own.clone()));
    assert_eq!(names(&unstage(&seen).unwrap()), ["unmount", "remove"]);
    seen.others = vec![own];
    assert!(matches!(
        unstage(&seen),
        Err(Refusal::MountedElsewhere { .. })
    ));
}

#[test]
fn a_filesystem_grows_where_it_is_mounted_writable() {
    let device = disk("vdb", 16, "bp1");
    let mounts = [
        mount_of(&device, "/target", "ro"),
        mount_of(&device, "/staging", "rw"),
    ];
    let small = Some(Bytes(GIB / 2));
    let steps = expand(&device, &mounts, small).unwrap();
    assert_eq!(
        steps,
        [Step::GrowMounted {
            filesystem: Ext4,
            at: "/staging".into()
        }]
    );
    assert!(matches!(
        expand(&device, &mounts[..1], small),
        Err(Refusal::GrowReadOnly { .. })
    ));
    assert_eq!(
        expand(&device, &mounts[..1], Some(Bytes(GIB))),
        Ok(Vec::new())
    );
}

#[test]
fn a_disk_that_was_attached_only_to_be_read_is_locked_before_anything_else_and_once() {
    let access = ext4();
    let locked = |access| Wanted {
        locked: true,
        ..wanted(access, true)
    };
    let mut there = seen(holds(Ext4, GIB));
    let steps = stage(locked(&access), &there).unwrap();
    assert_eq!(names(&steps), ["setro", "mount-ro"]);
    let steps = stage(locked(&Access::Block), &there).unwrap();
    assert_eq!(names(&steps), ["setro"]);
    there.device.read_only = true;
    let steps = stage(locked(&access), &there).unwrap();
    assert_eq!(names(&steps), ["mount-ro"]);
}
