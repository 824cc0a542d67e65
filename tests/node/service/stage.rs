//! Staging: disks that are not formatted or mounted, and the wait for the device.

use std::fs;
use std::os::unix::fs::symlink;

use tonic::Code;

use crate::service::kit::{MIB, NodeVolume, SHORT_TIMEOUT, SIZE, World, assert_fails, is_mounted, sh};

/// Stages a disk, which must fail with these words and leave the disk unchanged.
async fn check_rejected_unchanged(world: &World, words: &[&str]) {
    let before = world.disk.hash().await;
    assert_fails(world.stage().await, Code::FailedPrecondition, words);
    assert_eq!(world.disk.hash().await, before, "the content of the disk changed");
    assert!(!is_mounted(&world.path("staging")));
}

#[tokio::test]
async fn unknown_data_is_not_formatted() {
    let Some(world) = World::new("ext4").await else { return };
    let device = world.disk.device();
    for at in [0, 3 * MIB, SIZE - 1] {
        sh(&format!(
            "dd if=/dev/zero of={0} bs=1M count=8 status=none; printf x | dd of={0} bs=1 seek={at} status=none",
            device
        ))
        .await;
        let words = ["neither blank", "unidentified data", &world.disk.serial];
        check_rejected_unchanged(&world, &words).await;
    }
}

#[tokio::test]
async fn a_filesystem_with_a_wiped_head_is_not_formatted() {
    for fs_type in ["ext4", "xfs", "btrfs"] {
        let Some(world) = World::new("ext4").await else { return };
        sh(&format!(
            "mkfs.{fs_type} -q {0}; dd if=/dev/zero of={0} bs=1M count=4 conv=notrunc,fsync status=none",
            world.disk.device()
        ))
        .await;
        let words = ["neither blank", "unidentified data", &world.disk.serial];
        // blkid may detect a superblock copy after the head, which is another error.
        let words = if fs_type == "btrfs" { &words[2..] } else { &words };
        check_rejected_unchanged(&world, words).await;
    }
}

#[tokio::test]
async fn data_after_a_blank_head_is_not_formatted() {
    let Some(world) = World::new("ext4").await else { return };
    sh(&format!(
        "dd if=/dev/urandom of={} bs=1M seek=100 count=20 conv=notrunc,fsync status=none",
        world.disk.device()
    ))
    .await;
    let words = ["neither blank", "unidentified data", &world.disk.serial];
    check_rejected_unchanged(&world, &words).await;
}

#[tokio::test]
async fn another_filesystem_type_is_named_and_kept() {
    let Some(world) = World::new("ext4").await else { return };
    sh(&format!("mkfs.xfs -q {}", world.disk.device())).await;
    let words = ["has xfs", "ext4 was requested"];
    check_rejected_unchanged(&world, &words).await;
}

#[tokio::test]
async fn swap_is_named_and_kept() {
    let Some(world) = World::new("ext4").await else { return };
    let device = world.disk.device();
    sh(&format!("mkswap {} 2>&1", device)).await;
    let words = ["it contains swap"];
    check_rejected_unchanged(&world, &words).await;
}

#[tokio::test]
async fn a_partition_table_is_named_and_kept() {
    let Some(world) = World::new("ext4").await else { return };
    for label in ["gpt", "dos"] {
        sh(&format!(
            "printf 'label: {label}\n,16M\n' | sfdisk -q --no-reread --wipe always {} 2>&1",
            world.disk.device()
        ))
        .await;
        let table = format!("a {label} partition table");
        check_rejected_unchanged(&world, &[&table]).await;
    }
}

#[tokio::test]
async fn a_stale_symlink_is_rejected_and_both_disks_are_unchanged() {
    let Some(world) = World::new("ext4").await else { return };
    let Some(other) = World::new("ext4").await else { return };
    let own = world.disk.device();
    fs::remove_file(world.disk.link()).unwrap();
    symlink(other.disk.device(), world.disk.link()).unwrap();
    let words = ["stale", &other.disk.serial, &world.id];
    check_rejected_unchanged(&world, &words).await;
    fs::remove_file(world.disk.link()).unwrap();
    symlink(own, world.disk.link()).unwrap();
}

#[tokio::test]
async fn a_serial_with_two_devices_is_rejected() {
    let Some(world) = World::new("ext4").await else { return };
    let second = sh(&format!("flock /dev losetup -f --show {}", world.disk.image.display())).await;
    let own = world.disk.device();
    let words = ["more than one device", &second, &own];
    check_rejected_unchanged(&world, &words).await;
}

#[tokio::test]
async fn staging_waits_for_the_device() {
    let Some(world) = World::detached("ext4").await else {
        return;
    };
    let serial = format!("serial {}", world.disk.serial);
    let late = world.within(SHORT_TIMEOUT).stage().await;
    assert_fails(late, Code::DeadlineExceeded, &[&serial]);
    let (staged, _device) = tokio::join!(world.stage(), world.disk.attach());
    staged.unwrap();
}

#[tokio::test]
async fn an_invalid_mount_option_is_rejected_and_the_mount_is_rolled_back() {
    let Some(world) = World::new("ext4").await else { return };
    let staged = world.with_flags(&["nonsense=7"]).stage().await;
    assert_fails(staged, Code::InvalidArgument, &["nonsense=7"]);
    assert!(!world.path("staging").exists());
}

#[tokio::test]
async fn block_settings_apply_to_the_device_until_it_is_unstaged() {
    let Some(world) = World::new("ext4").await else { return };
    let name = world.disk.device();
    let queue = std::path::Path::new("/sys/block")
        .join(name.trim_start_matches("/dev/"))
        .join("queue");
    let read = |setting: &str| fs::read_to_string(queue.join(setting)).unwrap();
    let with = |settings: &str| NodeVolume {
        context: [("sysConfig".to_owned(), settings.to_owned())].into(),
        ..world.clone()
    };
    for _ in 0..2 {
        let volume = with("queue/read_ahead_kb=640,queue/scheduler=mq-deadline");
        volume.stage().await.unwrap();
    }
    assert_eq!(read("read_ahead_kb"), "640\n");
    assert!(read("scheduler").contains("[mq-deadline]"));
    world.unstage().await.unwrap();

    // Without a scheduler, the depth of the device's queue is the limit.
    let volume = with("queue/read_ahead_kb=640,queue/nr_requests=10000");
    let words = ["BLOCK_SETTING_REJECTED", "queue/nr_requests=10000"];
    assert_fails(volume.stage().await, Code::FailedPrecondition, &words);
    assert!(!is_mounted(&world.path("staging")));
}
