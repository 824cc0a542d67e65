//! Staging: disks that are not formatted or mounted, and the wait for the device.

use std::fs;
use std::os::unix::fs::symlink;

use diskplugin::csi::proto::node_server::Node as _;
use diskplugin::csi::proto::volume_capability::AccessType;
use tonic::Code;

use crate::service::kit::{MIB, SHORT_TIMEOUT, SIZE, World, can_run, is_mounted, sh, writer_capability};

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
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop11").await;
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
    if !can_run().await {
        return;
    }
    for (fs_type, serial) in [("ext4", "nodeloop46"), ("xfs", "nodeloop47"), ("btrfs", "nodeloop48")] {
        let world = World::new(serial).await;
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
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop49").await;
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
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop12").await;
    sh(&format!("mkfs.xfs -q {}", world.device())).await;
    let words = ["has xfs", "ext4 was requested"];
    check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn swap_is_named_and_kept() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop13").await;
    let device = world.device();
    sh(&format!("mkswap {} 2>&1", device)).await;
    let words = ["it contains swap"];
    check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn a_partition_table_is_named_and_kept() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop14").await;
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
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop15").await;
    let other = World::new("nodeloop16").await;
    let own = world.device();
    fs::remove_file(world.link()).unwrap();
    symlink(other.device(), world.link()).unwrap();
    let words = ["stale", "nodeloop16", "d-nodeloop15"];
    check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &words).await;
    fs::remove_file(world.link()).unwrap();
    symlink(own, world.link()).unwrap();
}

#[tokio::test]
async fn a_serial_with_two_devices_is_rejected() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop17").await;
    let second = sh(&format!("flock /dev losetup -f --show {}", world.image().display())).await;
    let own = world.device();
    let words = ["more than one device", &second, &own];
    check_rejected_unchanged(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn staging_waits_for_the_device() {
    if !can_run().await {
        return;
    }
    let world = World::without_device("nodeloop18");
    let error = world
        .stage_within(SHORT_TIMEOUT, &writer_capability("ext4"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded);
    assert!(error.message().contains("serial nodeloop18"), "{error}");
    let capability = writer_capability("ext4");
    let (staged, _device) = tokio::join!(world.stage(&capability), world.attach());
    staged.unwrap();
}

#[tokio::test]
async fn an_invalid_mount_option_is_rejected_and_the_mount_is_rolled_back() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop38").await;
    let mut capability = writer_capability("ext4");
    if let Some(AccessType::Mount(mount)) = &mut capability.access_type {
        mount.mount_flags = vec!["nonsense=7".to_owned()];
    }
    let error = world.stage(&capability).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.message().contains("nonsense=7"), "{error}");
    assert!(!world.path("staging").exists());
}

#[tokio::test]
async fn block_settings_apply_to_the_device_until_it_is_unstaged() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop66").await;
    let name = world.device();
    let queue = std::path::Path::new("/sys/block")
        .join(name.trim_start_matches("/dev/"))
        .join("queue");
    let read = |setting: &str| fs::read_to_string(queue.join(setting)).unwrap();
    let mut request = world.stage_request(&writer_capability("ext4"));
    let context = "queue/read_ahead_kb=640,queue/scheduler=mq-deadline";
    request
        .volume_context
        .insert("sysConfig".to_owned(), context.to_owned());
    let stage = async |request| {
        let staged = world.service.node_stage_volume(tonic::Request::new(request));
        staged.await.map(drop)
    };
    stage(request.clone()).await.unwrap();
    stage(request).await.unwrap();
    assert_eq!(read("read_ahead_kb"), "640\n");
    assert!(read("scheduler").contains("[mq-deadline]"));
    world.unstage().await.unwrap();

    let mut request = world.stage_request(&writer_capability("ext4"));
    // Without a scheduler, the depth of the device's queue is the limit.
    let context = "queue/read_ahead_kb=640,queue/nr_requests=10000";
    request
        .volume_context
        .insert("sysConfig".to_owned(), context.to_owned());
    let error = stage(request).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    let words = ["BLOCK_SETTING_REJECTED", "queue/nr_requests=10000"];
    assert!(words.iter().all(|word| error.message().contains(word)), "{error}");
    assert!(!is_mounted(&world.path("staging")));
}
