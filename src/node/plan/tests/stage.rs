//! Tests of staging.

use super::*;
use crate::linux::fake::partition;

#[test]
fn the_content_of_a_disk_determines_the_steps() {
    let (xfs, btrfs) = (mount_access(Xfs, ""), mount_access(Btrfs, ""));
    let half = GIB / 2;
    for (content, access, read_only, steps) in [
        (Content::Blank, &ext4(), false, "format mount"),
        (filesystem_content(Ext4, GIB), &ext4(), false, "check mount"),
        (
            filesystem_content(Ext4, half),
            &ext4(),
            false,
            "check grow-unmounted mount",
        ),
        // The kernel mounts ext3 as ext4.
        (
            filesystem_content(Ext3, half),
            &ext4(),
            false,
            "check grow-unmounted mount",
        ),
        (filesystem_content(Ext3, GIB), &ext4(), true, "mount-ro"),
        (filesystem_content(Xfs, half), &xfs, false, "mount grow-mounted"),
        // A read-only filesystem is neither checked nor grown.
        (filesystem_content(Ext4, half), &ext4(), true, "mount-ro"),
        (filesystem_content(Btrfs, half), &btrfs, true, "mount-ro"),
    ] {
        let planned = stage(access, read_only, &stage_observation(content.clone()));
        assert_eq!(outcome(planned), steps, "{content} {read_only}");
    }
}

#[test]
fn only_a_blank_disk_is_ever_formatted() {
    let foreign = Content::Unsupported {
        description: "a gpt partition table".to_owned(),
    };
    for content in [Some(foreign), Some(filesystem_content(Xfs, GIB)), None] {
        for read_only in [false, true] {
            assert!(stage(&ext4(), read_only, &stage_observation(content.clone())).is_err());
        }
    }
    assert_eq!(
        outcome(stage(&ext4(), true, &stage_observation(Content::Blank))),
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
    let plan = |content: &Content, format_record, read_only| {
        let observed = StageObservation {
            format_record,
            ..stage_observation(content.clone())
        };
        stage(&ext4(), read_only, &observed)
    };
    let unfinished = Content::IncompleteFormat { filesystem: Xfs };
    for content in [&unfinished, &Content::Unknown { offset: 4096 }] {
        let steps = outcome(plan(content, FormatRecord::Current, false));
        assert_eq!(steps, "wipe format mount");
        for (format_record, read_only) in [
            (FormatRecord::Current, true),
            (stale(), false),
            (FormatRecord::None, false),
        ] {
            assert!(plan(content, format_record, read_only).is_err());
        }
        let error = outcome(plan(content, stale(), false));
        assert!(
            error.contains("a mkfs.xfs was interrupted on it") && error.contains("because the disk was detached"),
            "{error}"
        );
    }
    for format_record in [FormatRecord::Current, stale()] {
        assert!(plan(&swap, format_record.clone(), false).is_err());
        // The mkfs completed, but its record still exists.
        let complete = plan(&filesystem_content(Ext4, GIB), format_record.clone(), false);
        assert_eq!(outcome(complete), "remove-format-record check mount");
        let blank = plan(&Content::Blank, format_record, false);
        assert_eq!(outcome(blank), "format mount");
    }
}

#[test]
fn the_fsck_policy_of_the_class_and_the_capability_apply() {
    let plan = |fsck, ext_grows_mounted, size| {
        let mut request = stage_request(&ext4(), false);
        request.tuning.fsck = fsck;
        let observed = StageObservation {
            ext_grows_mounted,
            ..stage_observation(filesystem_content(Ext4, size))
        };
        super::super::stage(&request, &observed)
    };
    let half = GIB / 2;
    for fsck in [Fsck::Journal, Fsck::Preen] {
        assert_eq!(plan(fsck, true, GIB).unwrap()[0], Step::Check(Ext4, fsck));
        assert_eq!(outcome(plan(fsck, false, half)), "check grow-unmounted mount");
        assert_eq!(outcome(plan(fsck, true, half)), "check mount grow-mounted");
    }
    assert_eq!(outcome(plan(Fsck::None, true, GIB)), "mount");
}

#[test]
fn staging_as_a_block_device_removes_the_format_record() {
    let observed = StageObservation {
        format_record: FormatRecord::Current,
        ..stage_observation(None)
    };
    let steps = outcome(stage(&Access::Block, false, &observed));
    assert_eq!(steps, "remove-format-record");
}

#[test]
fn the_error_of_a_filesystem_mismatch_names_both_types() {
    for (found, requested, text) in [
        (Xfs, Ext4, "has xfs, but ext4 was requested"),
        (Ext4, Ext3, "has ext4, but ext3 was requested"),
    ] {
        let observed = stage_observation(filesystem_content(found, GIB));
        let error = outcome(stage(&mount_access(requested, ""), false, &observed));
        assert_eq!(error, format!("/dev/vdb (254:16) {text}"));
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
        let error = stage(&ext4(), false, &observed).unwrap_err();
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
    for (content, is_ok, expected) in [
        (filesystem_content(Ext4, device.size.0), true, "check mount"),
        (Content::Blank, false, "has nothing"),
        (Content::Unknown { offset: 7 }, false, "unidentified data"),
    ] {
        let observed = StageObservation {
            device: device.clone(),
            ..stage_observation(content)
        };
        let planned = stage(&ext4(), false, &observed);
        assert_eq!(planned.is_ok(), is_ok, "{planned:?}");
        let planned = outcome(planned);
        let is_expected = if is_ok {
            planned == expected
        } else {
            planned.contains(expected)
        };
        assert!(is_expected, "{planned}");
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
    let observed = StageObservation {
        device: device.clone(),
        partition_grows: true,
        ..stage_observation(filesystem_content(Ext4, device.size.0))
    };
    let steps = "check mount grow-partition grow-mounted";
    assert_eq!(outcome(stage(&ext4(), false, &observed)), steps);
    assert_eq!(outcome(stage(&ext4(), true, &observed)), "mount-ro");
    let mounts = [mount_of(&device, "/staging", "rw")];
    let steps = expand(&device, &mounts, Some(device.size), true);
    assert_eq!(outcome(steps), "grow-partition grow-mounted");
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

/// The filesystem `kind` is mounted at the staging path.
fn staged(kind: &str, options: &str) -> StageObservation {
    let mut mount = mount_of(&disk("vdb", 16, "bp1"), "/staging", options);
    mount.kind = kind.to_owned();
    StageObservation {
        staging: path_state("/staging", Entry::Directory, Some(mount)),
        ..stage_observation(None)
    }
}

#[test]
fn staging_again_succeeds_if_compatible_and_fails_otherwise() {
    for (read_only, options) in [(false, "rw"), (true, "ro"), (true, "ro,noatime")] {
        let again = stage(&ext4(), read_only, &staged("ext4", options));
        assert_eq!(again, Ok(Vec::new()), "{options}");
    }
    for (access, read_only, options) in [
        (ext4(), true, "rw"),
        (ext4(), false, "ro"),
        (mount_access(Xfs, ""), false, "rw"),
        (Access::Block, false, "rw"),
    ] {
        let refused = stage(&access, read_only, &staged("ext4", options));
        assert_error(&refused, Failure::StagingConflict, "the volume is already at /staging ");
    }
    let other = StageObservation {
        device: disk("vdc", 32, "bp2"),
        ..staged("ext4", "rw")
    };
    let part = "is mounted at /staging, not this volume";
    assert_error(&stage(&ext4(), false, &other), Failure::TargetConflict, part);
}

/// ext grows while it is mounted only if the process has the capability.
#[test]
fn staging_again_completes_an_interrupted_expansion() {
    for (filesystem, ext_grows_mounted, steps) in [
        (Xfs, false, "grow-mounted"),
        (Ext4, true, "grow-mounted"),
        (Ext4, false, ""),
    ] {
        let observed = StageObservation {
            mounted_size: Ok(Some(Bytes(GIB / 2))),
            ext_grows_mounted,
            ..staged(filesystem.as_str(), "rw")
        };
        let again = stage(&mount_access(filesystem, ""), false, &observed);
        assert_eq!(outcome(again), steps, "{filesystem} {ext_grows_mounted}");
    }
}

#[test]
fn staging_fails_if_the_path_is_not_a_directory() {
    for entry in [Entry::Symlink, Entry::File, Entry::Other] {
        let mut observed = stage_observation(Content::Blank);
        observed.staging.entry = entry;
        let refused = stage(&ext4(), false, &observed);
        assert_error(&refused, Failure::TargetConflict, ", not a directory");
    }
}

#[test]
fn the_device_of_a_read_only_attachment_is_set_read_only_first() {
    for (access, is_read_only, steps) in [
        (ext4(), false, "setro mount-ro"),
        (Access::Block, false, "setro"),
        (ext4(), true, "mount-ro"),
    ] {
        let mut request = stage_request(&access, true);
        request.device_read_only = true;
        let mut observed = stage_observation(filesystem_content(Ext4, GIB));
        observed.device.read_only = is_read_only;
        assert_eq!(outcome(super::super::stage(&request, &observed)), steps);
    }
}
