//! Unpublishing and unstaging.

use std::fs;
use std::os::unix::fs::symlink;

use tonic::Code;

use crate::service::kit::{NodeVolume, SHORT_TIMEOUT, World, assert_fails, is_mounted, sh};

#[tokio::test]
async fn unstage_fails_while_published_and_unpublish_fails_for_another_volume() {
    let Some(world) = World::new("ext4").await else { return };
    world.mount().await;
    assert_fails(world.unstage().await, Code::FailedPrecondition, &[&world.target]);

    let Some(other) = World::new("ext4").await else { return };
    let link = world.path("devices").join(&other.disk.serial);
    symlink(other.disk.device(), link).unwrap();
    let misdirected = NodeVolume {
        id: other.id.clone(),
        ..world.clone()
    };
    assert_fails(misdirected.unpublish().await, Code::FailedPrecondition, &[]);
    assert!(is_mounted(&world.path("target")));
}

#[tokio::test]
async fn an_unknown_volume_id_unmounts_nothing() {
    for kind in ["ext4", "btrfs", "block"] {
        let Some(world) = World::new(kind).await else { return };
        world.mount().await;
        let unknown = NodeVolume {
            id: "d-unknown".to_owned(),
            ..world.clone()
        };
        let image = world.disk.image.display().to_string();
        assert_fails(unknown.unpublish().await, Code::FailedPrecondition, &[&image]);
        assert!(is_mounted(&world.path("target")), "{kind}");
        if kind != "block" {
            assert_fails(unknown.unstage().await, Code::FailedPrecondition, &[]);
            assert!(is_mounted(&world.path("staging")));
        }
        world.unmount().await;
    }
}

#[tokio::test]
async fn a_mounted_disk_without_its_symlink_is_unmounted() {
    for kind in ["ext4", "block"] {
        let Some(world) = World::new(kind).await else { return };
        world.mount().await;
        match kind {
            // A bind mount of the device node alone would not keep the device.
            "block" => fs::remove_file(world.disk.link()).unwrap(),
            _ => world.force_detach().await,
        }
        world.unmount().await;
        assert!(!world.path("target").exists() && !is_mounted(&world.path("staging")));
    }
}

#[tokio::test]
async fn targets_that_are_symlinks_or_contain_files_are_kept() {
    let Some(world) = World::new("ext4").await else { return };
    symlink(world.home.path(), world.path("staging")).unwrap();
    let error = world.stage().await.unwrap_err();
    assert!(error.message().contains("a symlink"), "{error}");
    fs::remove_file(world.path("staging")).unwrap();

    fs::create_dir(world.path("target")).unwrap();
    fs::write(world.path("target/keep"), "x").unwrap();
    assert!(world.unpublish().await.is_err());
    assert!(world.path("target/keep").exists());
}

#[tokio::test]
async fn the_error_of_a_busy_target_names_mounts_and_how_to_find_processes() {
    let Some(world) = World::new("ext4").await else { return };
    world.mount().await;
    let open = fs::File::create(world.path("target/file")).unwrap();
    let command = format!("`fuser -vm {}`", world.target);
    let words = ["DEVICE_IN_USE", "in use by a process", &command];
    let busy = world.within(SHORT_TIMEOUT).unpublish().await;
    assert_fails(busy, Code::FailedPrecondition, &words);
    assert!(is_mounted(&world.path("target")));
    sh(&format!("mount -t tmpfs none {}", world.text("staging/lost+found"))).await;
    let error = world.within(SHORT_TIMEOUT).unstage().await.unwrap_err();
    assert!(error.message().contains(&world.target), "{error}");
    let (unpublished, ()) = tokio::join!(world.unpublish(), async { drop(open) });
    unpublished.unwrap();
    let error = world.within(SHORT_TIMEOUT).unstage().await.unwrap_err();
    let below = format!("a mount at {}", world.text("staging/lost+found"));
    assert!(error.message().contains(&below), "{error}");
    sh(&format!("umount {}", world.text("staging/lost+found"))).await;
    world.unstage().await.unwrap();
}

/// Starts a process in a mount namespace of its own, which has a copy of every mount, and returns its ID.
async fn start_in_new_namespace(redirection: &str) -> String {
    sh(&format!(
        "setsid unshare -m --propagation private sleep 120 < /dev/null > /dev/null 2>&1 {redirection} & p=$!
         until grep -q sleep /proc/$p/comm; do sleep 0.01; done; echo $p"
    ))
    .await
}

#[tokio::test]
async fn a_copy_of_the_mount_in_another_namespace_does_not_block_unstaging() {
    let Some(world) = World::new("ext4").await else { return };
    world.stage().await.unwrap();
    let pid = start_in_new_namespace("").await;
    sh(&format!("grep -F {} /proc/{pid}/mountinfo", world.staging)).await;
    world.within(SHORT_TIMEOUT).unstage().await.unwrap();
    let device = world.disk.device();
    sh(&format!("mkfs.ext4 -q -F {}", device)).await;
    sh(&format!("kill {pid}")).await;
}

#[tokio::test]
async fn an_open_file_in_another_namespace_blocks_unstaging() {
    let Some(world) = World::new("ext4").await else { return };
    world.stage().await.unwrap();
    let pid = start_in_new_namespace("").await;
    // Opened in the other namespace, so that the mount of this one is not busy.
    let file = world.text("staging/file");
    let start = format!(
        "setsid nsenter -m -t {pid} bash -c 'exec sleep 120 3> {file}' < /dev/null > /dev/null 2>&1 & p=$!
         until grep -q sleep /proc/$p/comm; do sleep 0.01; done; echo $p"
    );
    let holder = sh(&start).await;
    let command = format!("`fuser -vm {}`", world.disk.device());
    for _ in 0..2 {
        let busy = world.within(SHORT_TIMEOUT).unstage().await;
        assert_fails(busy, Code::FailedPrecondition, &[&command]);
    }
    // kubelet starts the next pod on this node.
    let error = world.stage().await.unwrap_err();
    for name in ["DEVICE_IN_USE", "staging", &command] {
        assert!(error.message().contains(name), "no {name:?}: {error}");
    }
    let end = format!("kill {holder} {pid}");
    let (unstaged, _) = tokio::join!(world.unstage(), sh(&end));
    unstaged.unwrap();
    let device = world.disk.device();
    sh(&format!("e2fsck -f -n {}", device)).await;
    sh(&format!("mkfs.ext4 -q -F {}", device)).await;
}

#[tokio::test]
async fn partially_unmounted_volumes_are_cleaned_up() {
    let Some(world) = World::new("ext4").await else { return };
    world.mount().await;
    // Stacked mounts.
    sh(&format!("mount --bind {0} {0}", world.target)).await;
    sh(&format!("mount --bind {} {}", world.staging, world.target)).await;
    world.unpublish().await.unwrap();
    assert!(!world.path("target").exists());
    // A file instead of a directory.
    fs::write(world.path("target"), "").unwrap();
    world.unpublish().await.unwrap();
    fs::write(world.path("target"), "data").unwrap();
    let rejected = world.unpublish().await;
    assert_fails(rejected, Code::FailedPrecondition, &["TARGET_CONFLICT"]);
    assert_eq!(fs::read_to_string(world.path("target")).unwrap(), "data");
    // Unmounted manually, and the directory is removed.
    sh(&format!("umount {}", world.staging)).await;
    fs::remove_dir(world.path("staging")).unwrap();
    world.unstage().await.unwrap();
}

#[tokio::test]
async fn a_busy_filesystem_that_is_shut_down_is_unmounted() {
    let Some(world) = World::new("xfs").await else { return };
    world.mount().await;
    let open = fs::File::create(world.path("target/file")).unwrap();
    sh(&format!("xfs_io -x -c shutdown {}", world.staging)).await;
    world.within(SHORT_TIMEOUT).unpublish().await.unwrap();
    assert!(!world.path("target").exists());
    // The kernel still uses the device.
    let error = world.within(SHORT_TIMEOUT).unstage().await.unwrap_err();
    assert!(error.message().contains("in use by a process"), "{error}");
    drop(open);
    world.unstage().await.unwrap();
    world.stage().await.unwrap();
    world.unstage().await.unwrap();
}

#[tokio::test]
async fn the_node_of_a_removed_device_is_unmounted() {
    let requirements = "command -v python3 && findmnt -n -t devtmpfs /dev";
    if !crate::common::shell::can_run("the removed device node", requirements).await {
        return;
    }
    let Some(world) = World::detached("block").await else {
        return;
    };
    world.attach_reserved().await;
    world.mount().await;
    world.unplug().await;
    let removed = format!("//deleted {} ", world.target);
    sh(&format!("grep -F '{removed}' /proc/self/mountinfo")).await;
    world.unmount().await;
    assert!(!world.path("target").exists());
}
