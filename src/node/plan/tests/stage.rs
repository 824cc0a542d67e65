//! Tests of staging.

use super::*;
use crate::linux::fake::partition;

#[test]
fn the_content_of_a_disk_determines_the_steps() {
    for (content, access, read_only, steps) in [
        (Content::Blank, ext4(), false, &["format", "mount"][..]),
        (filesystem_content(Ext4, GIB), ext4(), false, &["check", "mount"]),
        (
            filesystem_content(Ext4, GIB / 2),
            ext4(),
            false,
            &["check", "grow-unmounted", "mount"],
        ),
        // The kernel mounts ext3 as ext4.
        (
            filesystem_content(Ext3, GIB / 2),
            ext4(),
            false,
            &["check", "grow-unmounted", "mount"],
        ),
        (filesystem_content(Ext3, GIB), ext4(), true, &["mount-ro"]),
        (
            filesystem_content(Xfs, GIB / 2),
            mount_access(Xfs),
            false,
            &["mount", "grow-mounted"],
        ),
        // A read-only filesystem is neither checked nor grown.
        (filesystem_content(Ext4, GIB / 2), ext4(), true, &["mount-ro"]),
        (
            filesystem_content(Btrfs, GIB / 2),
            mount_access(Btrfs),
            true,
            &["mount-ro"],
        ),
    ] {
        let planned = stage(requested(&access, read_only), &stage_observation(content.clone())).unwrap();
        assert_eq!(step_names(&planned), steps, "{content} {read_only}");
    }
}

#[test]
fn only_a_blank_disk_is_ever_formatted() {
    let foreign = Content::Unsupported {
        description: "a gpt partition table".to_owned(),
    };
    for content in [Some(foreign), Some(filesystem_content(Xfs, GIB)), None] {
        let observed = StageObservation {
            content,
            ..stage_observation(Content::Blank)
        };
        for read_only in [false, true] {
            assert!(stage(requested(&ext4(), read_only), &observed).is_err());
        }
    }
    let error = stage(requested(&ext4(), true), &stage_observation(Content::Blank)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "/dev/vdb (254:16) is blank, and read-only use never formats a disk"
    );
}

#[test]
fn an_interrupted_mkfs_is_repeated_only_with_a_current_format_record() {
    let stale = || FormatRecord::Stale {
        filesystem: "xfs".to_owned(),
        reason: "the disk was detached",
    };
    let swap = Content::Unsupported {
        description: "swap (other)".to_owned(),
    };
    let unfinished = Content::IncompleteFormat { filesystem: Xfs };
    let unknown = Content::Unknown { offset: 4096 };
    let access = ext4();
    let plan = |content: &Content, format_record, read_only| {
        let observed = StageObservation {
            format_record,
            ..stage_observation(content.clone())
        };
        stage(requested(&access, read_only), &observed)
    };
    for content in [&unfinished, &unknown] {
        let steps = plan(content, FormatRecord::Current, false).unwrap();
        assert_eq!(step_names(&steps), ["wipe", "format", "mount"]);
        for (format_record, read_only) in [
            (FormatRecord::Current, true),
            (stale(), false),
            (FormatRecord::None, false),
        ] {
            assert!(plan(content, format_record, read_only).is_err());
        }
        let error = plan(content, stale(), false).unwrap_err().to_string();
        assert!(
            error.contains("a mkfs.xfs was interrupted on it") && error.contains("because the disk was detached"),
            "{error}"
        );
    }
    for format_record in [FormatRecord::Current, stale()] {
        assert!(plan(&swap, format_record.clone(), false).is_err());
        // The mkfs completed, but its record still exists.
        let steps = plan(&filesystem_content(Ext4, GIB), format_record.clone(), false).unwrap();
        assert_eq!(step_names(&steps), ["remove-format-record", "check", "mount"]);
        let steps = plan(&Content::Blank, format_record, false).unwrap();
        assert_eq!(step_names(&steps), ["format", "mount"]);
    }
}

#[test]
fn the_fsck_policy_of_the_class_applies() {
    let access = ext4();
    let plan = |fsck, ext_grows_mounted, size| {
        let tuning = Tuning {
            fsck,
            ..Tuning::default()
        };
        let observed = StageObservation {
            ext_grows_mounted,
            ..stage_observation(filesystem_content(Ext4, size))
        };
        stage_tuned(requested(&access, false), &tuning, &observed).unwrap()
    };
    let half = GIB / 2;
    for fsck in [Fsck::Journal, Fsck::Preen] {
        assert_eq!(plan(fsck, true, GIB)[0], Step::Check(Ext4, fsck));
        assert_eq!(
            step_names(&plan(fsck, false, half)),
            ["check", "grow-unmounted", "mount"]
        );
        assert_eq!(step_names(&plan(fsck, true, half)), ["check", "mount", "grow-mounted"]);
    }
    assert_eq!(step_names(&plan(Fsck::None, true, GIB)), ["mount"]);
}

#[test]
fn staging_as_a_block_device_removes_the_format_record() {
    let observed = StageObservation {
        format_record: FormatRecord::Current,
        content: None,
        ..stage_observation(Content::Blank)
    };
    let steps = stage(requested(&Access::Block, false), &observed).unwrap();
    assert_eq!(step_names(&steps), ["remove-format-record"]);
}

#[test]
fn the_error_of_a_filesystem_mismatch_names_both_types() {
    for (found, access, text) in [
        (Xfs, ext4(), "has xfs, but ext4 was requested"),
        (Ext4, mount_access(Ext3), "has ext4, but ext3 was requested"),
    ] {
        let observed = stage_observation(filesystem_content(found, GIB));
        let error = stage(requested(&access, false), &observed).unwrap_err();
        assert_eq!(error.to_string(), format!("/dev/vdb (254:16) {text}"));
    }
}

#[test]
fn staging_a_device_in_use_fails() {
    let mut partitioned = stage_observation(Content::Blank);
    partitioned.device.partitions = vec![partition(&partitioned.device)];
    let mut held = stage_observation(Content::Blank);
    held.device.holders = vec!["dm-0".to_owned()];
    let mut elsewhere = stage_observation(Content::Blank);
    elsewhere.elsewhere = vec![mount_of(&elsewhere.device, "/mnt", "rw")];
    for (observed, word) in [(partitioned, "vdb1"), (held, "dm-0"), (elsewhere, "mounted at /mnt")] {
        let error = stage(requested(&ext4(), false), &observed).unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn a_single_partition_with_a_filesystem_can_be_staged() {
    let mut disk = disk("vdb", 16, "bp1");
    let error = single_partition(&disk).unwrap_err().to_string();
    assert!(error.contains("has no partition"), "{error}");
    disk.partitions = vec![partition(&disk)];
    let device = single_partition(&disk).unwrap();
    assert_eq!(device.path, Path::new("/dev/vdb1"));
    assert!(!partition_grows(&disk));
    for (content, expected) in [
        (filesystem_content(Ext4, device.size.0), Ok(["check", "mount"])),
        (Content::Blank, Err("has nothing")),
        (Content::Unknown { offset: 7 }, Err("unidentified data")),
    ] {
        let observed = StageObservation {
            device: device.clone(),
            ..stage_observation(content)
        };
        match (stage(requested(&ext4(), false), &observed), expected) {
            (Ok(steps), Ok(expected)) => assert_eq!(step_names(&steps), expected),
            (Err(error), Err(expected)) => {
                assert!(error.to_string().contains(expected), "{error}");
            }
            (planned, _) => panic!("{planned:?}"),
        }
    }
    disk.partitions.push(partition(&disk));
    let error = single_partition(&disk).unwrap_err().to_string();
    assert!(error.contains("has vdb1, vdb1"), "{error}");
}

#[test]
fn a_partition_grows_with_its_disk_while_it_is_mounted() {
    let mut disk = disk("vdb", 16, "bp1");
    disk.partitions = vec![partition(&disk)];
    disk.size = Bytes(2 * GIB);
    assert!(partition_grows(&disk));
    let device = single_partition(&disk).unwrap();
    let size = device.size.0;
    let observed = StageObservation {
        device: device.clone(),
        partition_grows: true,
        ..stage_observation(filesystem_content(Ext4, size))
    };
    let steps = stage(requested(&ext4(), false), &observed).unwrap();
    assert_eq!(step_names(&steps), ["check", "mount", "grow-partition", "grow-mounted"]);
    let steps = stage(requested(&ext4(), true), &observed).unwrap();
    assert_eq!(step_names(&steps), ["mount-ro"]);
    let mounts = [mount_of(&device, "/staging", "rw")];
    let steps = super::super::expand(&device, &mounts, Some(device.size), true).unwrap();
    assert_eq!(step_names(&steps), ["grow-partition", "grow-mounted"]);
}

/// A DOS partition table has 32-bit sector numbers, and a GPT has its backup in the last 33 sectors.
#[test]
fn a_partition_at_the_end_of_a_dos_partition_table_does_not_grow() {
    const SECTOR: u64 = 512;
    let mut disk = disk("vdb", 16, "bp1");
    disk.size = Bytes(3 << 40);
    for (sectors_after, grows) in [(0, false), (1, false), (34, true), (1 << 30, true)] {
        let mut last = partition(&disk);
        last.size = Bytes((2 << 40) - last.start.0 - sectors_after * SECTOR);
        disk.partitions = vec![last];
        assert!(partition_has_room(&disk), "{sectors_after}");
        assert_eq!(partition_grows(&disk), grows, "{sectors_after}");
    }
}

#[test]
fn staging_again_succeeds_if_compatible_and_fails_otherwise() {
    let device = disk("vdb", 16, "bp1");
    let staged = |options: &str| StageObservation {
        staging: path_state(
            "/staging",
            Entry::Directory,
            Some(mount_of(&device, "/staging", options)),
        ),
        content: None,
        ..stage_observation(Content::Blank)
    };
    for (access, read_only, options) in [
        (ext4(), false, "rw"),
        (ext4(), true, "ro"),
        (ext4(), true, "ro,noatime"),
    ] {
        let again = stage(requested(&access, read_only), &staged(options));
        assert_eq!(again, Ok(Vec::new()), "{options}");
    }
    for (access, read_only, options) in [
        (ext4(), true, "rw"),
        (ext4(), false, "ro"),
        (mount_access(Xfs), false, "rw"),
        (Access::Block, false, "rw"),
    ] {
        let refused = stage(requested(&access, read_only), &staged(options));
        assert_error(&refused, Failure::StagingConflict, "the volume is already at /staging ");
    }
    let other = StageObservation {
        device: disk("vdc", 32, "bp2"),
        ..staged("rw")
    };
    let refused = stage(requested(&ext4(), false), &other);
    assert_error(
        &refused,
        Failure::TargetConflict,
        "is mounted at /staging, not this volume",
    );
}

#[test]
fn staging_again_completes_an_interrupted_expansion() {
    let device = disk("vdb", 16, "bp1");
    let mut mount = mount_of(&device, "/staging", "rw");
    mount.kind = "xfs".to_owned();
    let observed = StageObservation {
        staging: path_state("/staging", Entry::Directory, Some(mount)),
        content: None,
        mounted_size: Some(Bytes(GIB / 2)),
        ..stage_observation(Content::Blank)
    };
    let planned = stage(requested(&mount_access(Xfs), false), &observed).unwrap();
    assert_eq!(step_names(&planned), ["grow-mounted"]);
}

#[test]
fn ext_grows_mounted_if_the_process_has_the_capability() {
    let device = disk("vdb", 16, "bp1");
    let grows = StageObservation {
        ext_grows_mounted: true,
        ..stage_observation(filesystem_content(Ext4, device.size.0 / 2))
    };
    let planned = stage(requested(&ext4(), false), &grows).unwrap();
    assert_eq!(step_names(&planned), ["check", "mount", "grow-mounted"]);
    let again = StageObservation {
        staging: path_state("/staging", Entry::Directory, Some(mount_of(&device, "/staging", "rw"))),
        content: None,
        mounted_size: Some(Bytes(device.size.0 / 2)),
        ..grows
    };
    let planned = stage(requested(&ext4(), false), &again).unwrap();
    assert_eq!(step_names(&planned), ["grow-mounted"]);
}

#[test]
fn staging_fails_if_the_path_is_not_a_directory() {
    for entry in [Entry::Symlink, Entry::File, Entry::Other] {
        let observed = StageObservation {
            staging: path_state("/staging", entry, None),
            ..stage_observation(Content::Blank)
        };
        let refused = stage(requested(&ext4(), false), &observed);
        assert_error(&refused, Failure::TargetConflict, ", not a directory");
    }
}

#[test]
fn the_device_of_a_read_only_attachment_is_set_read_only_first() {
    let access = ext4();
    let read_only = |access| RequestedAccess {
        device_read_only: true,
        ..requested(access, true)
    };
    let mut there = stage_observation(filesystem_content(Ext4, GIB));
    let steps = stage(read_only(&access), &there).unwrap();
    assert_eq!(step_names(&steps), ["setro", "mount-ro"]);
    let steps = stage(read_only(&Access::Block), &there).unwrap();
    assert_eq!(step_names(&steps), ["setro"]);
    there.device.read_only = true;
    let steps = stage(read_only(&access), &there).unwrap();
    assert_eq!(step_names(&steps), ["mount-ro"]);
}
