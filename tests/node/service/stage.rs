//! Staging: disks that are not formatted or mounted, and the wait for the device.

use std::fs;
use std::os::unix::fs::symlink;

use diskplugin::csi::proto::node_server::Node as _;
use tonic::Code;

use crate::service::kit::{MIB, SHORT_TIMEOUT, SIZE, World, is_mounted, sh, with_flags, writer_capability};

/// Stages a disk, which must fail with these words and leave the disk unchanged.
async fn check_rejected_unchanged(world: &World, fs_type: &str, code: Code, words: &[&str]) {
    let before = world.hash().await;
    let error = world.stage(&writer_capability(fs_type)).await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    for word in words {
        assert!(error.message().contains(word), "{word}: {error}");
    }
    assert_eq!(world.hash().await, before, "the content of the disk changed");
    assert!(!is_mounted(&world.path("staging")));
}

#[tokio::test]
async fn unknown_data_is_not_formatted() {
    let Some(world) = World::new().await else { return };
    let device = world.device();
    for at in [0, 3 * MIB, SIZE - 1] {
        sh(&format!(
            "dd if=/dev/zero of={0} bs=1M count=8 status=none; printf x | dd of={0} bs=1 seek={at} status=none",
            device
        ))
        .await;
        let words = ["neither blank", "unidentified data", &world.serial];
        check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &words).await;
    }
}

#[tokio::test]
async fn a_filesystem_with_a_wiped_head_is_not_formatted() {
    for fs_type in ["ext4", "xfs", "btrfs"] {
        let Some(world) = World::new().await else { return };
        sh(&format!(
            "mkfs.{fs_type} -q {0}; dd if=/dev/zero of={0} bs=1M count=4 conv=notrunc,fsync status=none",
            world.device()
        ))
        .await;
        let words = ["neither blank", "unidentified data", &world.serial];
        // blkid may detect a superblock copy after the head, which is another error.
        let words = if fs_type == "btrfs" { &words[2..] } else { &words };
        check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, words).await;
    }
}

#[tokio::test]
async fn data_after_a_blank_head_is_not_formatted() {
    let Some(world) = World::new().await else { return };
    sh(&format!(
        "dd if=/dev/urandom of={} bs=1M seek=100 count=20 conv=notrunc,fsync status=none",
        world.device()
    ))
    .await;
    let words = ["neither blank", "unidentified data", &world.serial];
    check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn another_filesystem_type_is_named_and_kept() {
    let Some(world) = World::new().await else { return };
    sh(&format!("mkfs.xfs -q {}", world.device())).await;
    let words = ["has xfs", "ext4 was requested"];
    check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn swap_is_named_and_kept() {
    let Some(world) = World::new().await else { return };
    let device = world.device();
    sh(&format!("mkswap {} 2>&1", device)).await;
    let words = ["it contains swap"];
    check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn a_partition_table_is_named_and_kept() {
    let Some(world) = World::new().await else { return };
    for label in ["gpt", "dos"] {
        sh(&format!(
            "printf 'label: {label}\n,16M\n' | sfdisk -q --no-reread --wipe always {} 2>&1",
            world.device()
        ))
        .await;
        let table = format!("a {label} partition table");
        check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &[&table]).await;
    }
}

#[tokio::test]
async fn a_stale_symlink_is_rejected_and_both_disks_are_unchanged() {
    let Some(world) = World::new().await else { return };
    let Some(other) = World::new().await else { return };
    let own = world.device();
    fs::remove_file(world.link()).unwrap();
    symlink(other.device(), world.link()).unwrap();
    let words = ["stale", &other.serial, &world.volume()];
    check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &words).await;
    fs::remove_file(world.link()).unwrap();
    symlink(own, world.link()).unwrap();
}

#[tokio::test]
async fn a_serial_with_two_devices_is_rejected() {
    let Some(world) = World::new().await else { return };
    let second = sh(&format!("flock /dev losetup -f --show {}", world.image().display())).await;
    let own = world.device();
    let words = ["more than one device", &second, &own];
    check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn staging_waits_for_the_device() {
    let Some(world) = World::without_device().await else {
        return;
    };
    let capability = writer_capability("ext4");
    let error = world.stage_within(SHORT_TIMEOUT, &capability).await.unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded);
    let serial = format!("serial {}", world.serial);
    assert!(error.message().contains(&serial), "{error}");
    let (staged, _device) = tokio::join!(world.stage(&capability), world.attach());
    staged.unwrap();
}

#[tokio::test]
async fn an_invalid_mount_option_is_rejected_and_the_mount_is_rolled_back() {
    let Some(world) = World::new().await else { return };
    let capability = with_flags(writer_capability("ext4"), &["nonsense=7"]);
    let error = world.stage(&capability).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.message().contains("nonsense=7"), "{error}");
    assert!(!world.path("staging").exists());
}

#[tokio::test]
async fn block_settings_apply_to_the_device_until_it_is_unstaged() {
    let Some(world) = World::new().await else { return };
    let name = world.device();
    let queue = std::path::Path::new("/sys/block")
        .join(name.trim_start_matches("/dev/"))
        .join("queue");
    let read = |setting: &str| fs::read_to_string(queue.join(setting)).unwrap();
    let stage = async |settings: &str| {
        let mut request = world.stage_request(&writer_capability("ext4"));
        let setting = ("sysConfig".to_owned(), settings.to_owned());
        request.volume_context.extend([setting]);
        let staged = world.service.node_stage_volume(tonic::Request::new(request));
        staged.await.map(drop)
    };
    for _ in 0..2 {
        stage("queue/read_ahead_kb=640,queue/scheduler=mq-deadline")
            .await
            .unwrap();
    }
    assert_eq!(read("read_ahead_kb"), "640\n");
    assert!(read("scheduler").contains("[mq-deadline]"));
    world.unstage().await.unwrap();

    // Without a scheduler, the depth of the device's queue is the limit.
    let error = stage("queue/read_ahead_kb=640,queue/nr_requests=10000")
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    let words = ["BLOCK_SETTING_REJECTED", "queue/nr_requests=10000"];
    assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
    assert!(!is_mounted(&world.path("staging")));
}
