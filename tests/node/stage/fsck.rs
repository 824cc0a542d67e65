//! Damaged filesystems: which are mounted, which are repaired, and which require a manual repair.

use std::os::unix::fs::FileExt;

use diskplugin::model::Filesystem::{self, Btrfs, Ext3, Ext4, Xfs};
use diskplugin::model::{Fsck, MountFlags};
use diskplugin::node::Access;

use super::kit::{World, is_mounted, sh};
use crate::common::mounts::mounts;

async fn stage_with(world: &World, filesystem: Filesystem, fsck: Fsck) -> Result<(), String> {
    let mut request = world.stage_request(filesystem);
    request.tuning.fsck = fsck;
    world.stage_as(request).await
}

#[tokio::test]
async fn an_ext4_with_errors_is_repaired_unless_the_class_forbids_it() {
    let Some(world) = World::new().await else { return };
    world.stage(Ext4).await.unwrap();
    world.unstage().await;
    let device = world.device();
    sh(&format!("debugfs -w -R 'set_super_value state 3' {device}")).await;
    let before = world.hash().await;
    let error = stage_with(&world, Ext4, Fsck::Journal).await.unwrap_err();
    assert!(
        error.starts_with("FILESYSTEM_DAMAGED") && error.contains(&format!("`e2fsck -f {device}`")),
        "{error}"
    );
    assert!(!world.path("staging").exists());
    assert_eq!(world.hash().await, before);
    world.stage(Ext4).await.unwrap();
    assert!(is_mounted(&world.path("staging")));
    world.unstage().await;
    stage_with(&world, Ext4, Fsck::Journal).await.unwrap();
}

/// The options of the filesystem at the staging path.
fn options(world: &World) -> String {
    let line = mounts(&world.path("staging")).pop();
    line.expect("it is mounted").super_options
}

#[tokio::test]
async fn an_error_stops_writes_to_an_ext_filesystem() {
    for filesystem in [Ext4, Ext3] {
        let Some(world) = World::new().await else { return };
        world.stage(filesystem).await.unwrap();
        let header = sh(&format!("dumpe2fs -h {} 2>/dev/null", world.device())).await;
        assert!(
            header.contains("Errors behavior:          Remount read-only"),
            "{header}"
        );
        world.unstage().await;
        // As the vendor's driver creates it.
        sh(&format!("tune2fs -e continue {}", world.device())).await;
        world.stage(filesystem).await.unwrap();
        let options_before = options(&world);
        assert!(options_before.contains("errors=remount-ro"), "{options_before}");
        let name = world.device().replace("/dev/", "");
        sh(&format!("echo 1 > /sys/fs/ext4/{name}/trigger_fs_error")).await;
        let written = std::fs::write(world.path("staging/file"), "lost");
        assert!(written.is_err(), "{filesystem}: {}", options(&world));
        let again = world.stage(filesystem).await.unwrap_err();
        assert!(again.starts_with("REMOUNTED_READ_ONLY"), "{again}");
        world.unstage().await;
        world.stage(filesystem).await.unwrap();
        std::fs::write(world.path("staging/file"), "written").unwrap();
    }
}

#[tokio::test]
async fn every_fsck_policy_replays_the_journal() {
    for (filesystem, fsck) in [
        (Ext4, Fsck::Journal),
        (Ext4, Fsck::Preen),
        (Ext4, Fsck::None),
        (Xfs, Fsck::Journal),
    ] {
        let Some(world) = World::new().await else { return };
        world.stage(filesystem).await.unwrap();
        let staging = world.path("staging");
        let file = std::fs::File::create(staging.join("file")).unwrap();
        file.write_all_at(b"precious", 0).unwrap();
        file.sync_all().unwrap();
        drop(file);
        // The journal is on the disk and must be replayed.
        sh(&format!("xfs_io -x -c 'shutdown -f' {}", staging.display())).await;
        world.unstage().await;
        stage_with(&world, filesystem, fsck).await.unwrap();
        let file = std::fs::read_to_string(staging.join("file")).unwrap();
        assert_eq!(file, "precious", "{filesystem} {fsck:?}");
        world.unstage().await;
    }
}

/// The disk is a copy of one that was mounted, like a disk from a snapshot.
#[tokio::test]
async fn a_filesystem_with_a_dirty_journal_is_mounted_from_a_read_only_device_with_an_option() {
    for (filesystem, option) in [
        (Ext3, "noload"),
        (Ext4, "noload"),
        (Xfs, "norecovery"),
        (Btrfs, "rescue=nologreplay"),
    ] {
        let Some(world) = World::new().await else { return };
        let (device, staging) = (world.device(), world.path("staging"));
        let (image, staging) = (world.path("copy"), staging.display());
        let image = image.display();
        world.stage(filesystem).await.unwrap();
        // A frozen filesystem has written the first line to its place; the second one is in the journal.
        sh(&format!(
            "echo one > {staging}/file; sync -f {staging}; fsfreeze -f {staging}; fsfreeze -u {staging}
             echo two | dd of={staging}/file oflag=append conv=notrunc,fsync status=none
             dd if={device} of={image} bs=1M iflag=direct status=none"
        ))
        .await;
        world.unstage().await;
        sh(&format!(
            "dd if={image} of={device} bs=1M conv=notrunc,fsync status=none"
        ))
        .await;
        let mut request = world.stage_request(filesystem);
        (request.read_only, request.device_read_only) = (true, true);
        let error = world.stage_as(request.clone()).await.unwrap_err();
        let is_named = error.starts_with("JOURNAL_NOT_REPLAYED") && error.contains(&format!("option {option}"));
        assert!(is_named, "{filesystem}: {error}");
        request.access = Access::Mount {
            filesystem,
            flags: MountFlags::new([option.to_owned()]).unwrap(),
        };
        world.stage_as(request).await.unwrap();
        let content = sh(&format!("cat {staging}/file")).await;
        assert!(content.starts_with("one"), "{filesystem}: {content:?}");
        world.unstage().await;
    }
}

#[tokio::test]
async fn a_corrupt_xfs_requires_a_manual_repair() {
    let Some(world) = World::new().await else { return };
    world.stage(Xfs).await.unwrap();
    world.unstage().await;
    let device = world.device();
    // Invalidates the checksum of the superblock.
    sh(&format!(
        "printf x | dd of={device} bs=1 seek=108 conv=notrunc status=none"
    ))
    .await;
    let error = world.assert_rejected(Xfs, "FILESYSTEM_DAMAGED").await;
    assert!(error.contains(&format!("`xfs_repair {device}`")), "{error}");
    assert!(!world.path("staging").exists());
}
