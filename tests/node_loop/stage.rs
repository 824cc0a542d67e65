//! Staging: what is never formatted or mounted, and what is waited for.

use std::fs;
use std::os::unix::fs::symlink;

use diskplugin::csi::proto::volume_capability::AccessType;
use tonic::Code;

use crate::kit::{BRIEF, MIB, SIZE, World, can_run, is_mounted, sh, writer};

/// The disk holds something else: staging is refused with these words, and no byte changes.
async fn is_refused_untouched(world: &World, fs_type: &str, code: Code, words: &[&str]) {
    let before = world.hash().await;
    let error = world.stage(&writer(fs_type)).await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    for word in words {
        assert!(error.message().contains(word), "{word}: {error}");
    }
    assert_eq!(world.hash().await, before, "the disk was written to");
    assert!(!is_mounted(&world.path("staging")));
}

#[tokio::test]
async fn unknown_data_is_never_formatted_over() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop11").await;
    let device = world.device();
    for at in [0, 3 * MIB, SIZE - 1] {
        sh(&format!(
            "dd if=/dev/zero of={0} bs=1M count=8 status=none; printf x | dd of={0} bs=1 seek={at} status=none",
            device.display()
        ))
        .await;
        let words = ["neither blank", "unknown kind", &world.serial];
        is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
    }
}

#[tokio::test]
async fn a_filesystem_whose_head_was_wiped_is_never_formatted_over() {
    if !can_run().await {
        return;
    }
    for (fs_type, serial) in [
        ("ext4", "nodeloop46"),
        ("xfs", "nodeloop47"),
        ("btrfs", "nodeloop48"),
    ] {
        let world = World::new(serial).await;
        sh(&format!(
            "mkfs.{fs_type} -q {0}; dd if=/dev/zero of={0} bs=1M count=4 conv=notrunc,fsync status=none",
            world.device().display()
        ))
        .await;
        let words = ["neither blank", "unknown kind", &world.serial];
        // What blkid may know by a mirror that lies beyond the head is another refusal.
        let words = if fs_type == "btrfs" {
            &words[2..]
        } else {
            &words
        };
        is_refused_untouched(&world, "ext4", Code::FailedPrecondition, words).await;
    }
}

#[tokio::test]
async fn a_wiped_head_before_files_alone_is_never_formatted_over() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop49").await;
    sh(&format!(
        "dd if=/dev/urandom of={} bs=1M seek=100 count=20 conv=notrunc,fsync status=none",
        world.device().display()
    ))
    .await;
    let words = ["neither blank", "unknown kind", &world.serial];
    is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn another_filesystem_is_named_and_left_alone() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop12").await;
    sh(&format!("mkfs.xfs -q {}", world.device().display())).await;
    let words = ["has xfs", "ext4 was asked for"];
    is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn foreign_volumes_are_named_and_left_alone() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop13").await;
    let device = world.device();
    sh(&format!("mkswap {} 2>&1", device.display())).await;
    let words = ["it holds swap"];
    is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn a_partition_table_is_named_and_left_alone() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop14").await;
    for label in ["gpt", "dos"] {
        sh(&format!(
            "printf 'label: {label}\n,16M\n' | sfdisk -q --no-reread --wipe always {} 2>&1",
            world.device().display()
        ))
        .await;
        let table = format!("a {label} partition table");
        is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &[&table]).await;
    }
}

#[tokio::test]
async fn a_link_to_another_disk_is_refused_and_neither_disk_is_touched() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop15").await;
    let other = World::new("nodeloop16").await;
    let own = world.device();
    fs::remove_file(world.link()).unwrap();
    symlink(other.device(), world.link()).unwrap();
    let words = ["stale", "nodeloop16", "d-nodeloop15"];
    is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
    fs::remove_file(world.link()).unwrap();
    symlink(own, world.link()).unwrap();
}

#[tokio::test]
async fn a_disk_that_answers_twice_is_refused() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop17").await;
    let twin = sh(&format!("losetup -f --show {}", world.image().display())).await;
    let own = world.device();
    let words = ["more than one device", &twin, own.to_str().unwrap()];
    is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn a_disk_that_does_not_come_is_waited_for_and_told() {
    if !can_run().await {
        return;
    }
    let world = World::without_device("nodeloop18");
    let error = world
        .stage_within(BRIEF, &writer("ext4"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded);
    assert!(error.message().contains("serial nodeloop18"), "{error}");
    let capability = writer("ext4");
    let (staged, _device) = tokio::join!(world.stage(&capability), world.attach());
    staged.unwrap();
}

#[tokio::test]
async fn an_option_that_no_filesystem_has_is_refused_and_nothing_is_left() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop38").await;
    let mut capability = writer("ext4");
    if let Some(AccessType::Mount(mount)) = &mut capability.access_type {
        mount.mount_flags = vec!["nonsense=7".to_owned()];
    }
    let error = world.stage(&capability).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.message().contains("nonsense=7"), "{error}");
    assert!(!world.path("staging").exists());
}
