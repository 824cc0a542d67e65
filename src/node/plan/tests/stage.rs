//! Staging.

use super::*;

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
fn a_mkfs_that_was_cut_off_is_finished_only_where_the_journal_proves_it_ours() {
    let stale = || Journal::Stale {
        filesystem: "xfs".to_owned(),
        why: "the disk was away",
    };
    let swap = Content::Foreign {
        what: "swap (other)".to_owned(),
    };
    let unfinished = Content::Unfinished { filesystem: Xfs };
    let unknown = Content::Unknown { at: 4096 };
    let access = ext4();
    let plan = |content: &Content, journal, read_only| {
        let seen = StageSeen {
            journal,
            ..seen(content.clone())
        };
        stage(wanted(&access, read_only), &seen)
    };
    for content in [&unfinished, &unknown] {
        let steps = plan(content, Journal::Ours, false).unwrap();
        assert_eq!(names(&steps), ["wipe", "format", "mount"]);
        for (journal, read_only) in [
            (Journal::Ours, true),
            (stale(), false),
            (Journal::Nothing, false),
        ] {
            assert!(plan(content, journal, read_only).is_err());
        }
        let refused = plan(content, stale(), false).unwrap_err().to_string();
        assert!(
            refused.contains("a mkfs.xfs was cut off on it")
                && refused.contains("because the disk was away"),
            "{refused}"
        );
    }
    for journal in [Journal::Ours, stale()] {
        assert!(plan(&swap, journal.clone(), false).is_err());
        // It was finished, and only the record is left.
        let steps = plan(&holds(Ext4, GIB), journal.clone(), false).unwrap();
        assert_eq!(names(&steps), ["forget-format", "check", "mount"]);
        let steps = plan(&Content::Blank, journal, false).unwrap();
        assert_eq!(names(&steps), ["format", "mount"]);
    }
}

#[test]
fn the_class_says_how_a_filesystem_is_looked_after() {
    let access = ext4();
    let plan = |fsck, ext_grows_mounted, size| {
        let tuning = Tuning {
            fsck,
            ..Tuning::default()
        };
        let seen = StageSeen {
            ext_grows_mounted,
            ..seen(holds(Ext4, size))
        };
        super::super::stage(wanted(&access, false), &tuning, &seen).unwrap()
    };
    let half = GIB / 2;
    for fsck in [Fsck::Journal, Fsck::Preen] {
        assert_eq!(plan(fsck, true, GIB)[0], Step::Check(Ext4, fsck));
        assert_eq!(
            names(&plan(fsck, false, half)),
            ["check", "grow-unmounted", "mount"]
        );
        assert_eq!(
            names(&plan(fsck, true, half)),
            ["check", "mount", "grow-mounted"]
        );
    }
    assert_eq!(names(&plan(Fsck::None, true, GIB)), ["mount"]);
}

#[test]
fn a_disk_that_is_handed_out_as_a_device_is_no_longer_half_made() {
    let seen = StageSeen {
        journal: Journal::Ours,
        content: None,
        ..seen(Content::Blank)
    };
    let steps = stage(wanted(&Access::Block, false), &seen).unwrap();
    assert_eq!(names(&steps), ["forget-format"]);
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
        staging: path_state(
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
        staging: path_state("/staging", Entry::Directory, Some(mount)),
        content: None,
        mounted_size: Some(Bytes(GIB / 2)),
        ..seen(Content::Blank)
    };
    let planned = stage(wanted(&mounted(Xfs), false), &seen).unwrap();
    assert_eq!(names(&planned), ["grow-mounted"]);
}

#[test]
fn ext_grows_once_it_is_mounted_where_the_kernel_lets_it() {
    let device = disk("vdb", 16, "bp1");
    let grows = StageSeen {
        ext_grows_mounted: true,
        ..seen(holds(Ext4, device.size.0 / 2))
    };
    let planned = stage(wanted(&ext4(), false), &grows).unwrap();
    assert_eq!(names(&planned), ["check", "mount", "grow-mounted"]);
    let again = StageSeen {
        staging: path_state(
            "/staging",
            Entry::Directory,
            Some(mount_of(&device, "/staging", "rw")),
        ),
        content: None,
        mounted_size: Some(Bytes(device.size.0 / 2)),
        ..grows
    };
    let planned = stage(wanted(&ext4(), false), &again).unwrap();
    assert_eq!(names(&planned), ["grow-mounted"]);
}

#[test]
fn a_staging_path_that_is_no_directory_is_refused() {
    for entry in [Entry::Symlink, Entry::File, Entry::Other] {
        let seen = StageSeen {
            staging: path_state("/staging", entry, None),
            ..seen(Content::Blank)
        };
        let refused = stage(wanted(&ext4(), false), &seen).unwrap_err();
        assert!(matches!(refused, Refusal::BadTarget { .. }), "{refused}");
    }
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
