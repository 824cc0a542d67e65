//! Unpublishing and unstaging.

use std::fs;
use std::os::unix::fs::symlink;

use diskplugin::csi::proto::node_server::Node as _;
use diskplugin::csi::proto::{NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest};
use tonic::{Code, Request};

use crate::service::kit::{SHORT_TIMEOUT, World, block_capability, is_mounted, sh, writer_capability};

#[tokio::test]
async fn unstage_fails_while_published_and_unpublish_fails_for_another_volume() {
    let Some(world) = World::new().await else { return };
    let capability = writer_capability("ext4");
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    let error = world.unstage().await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(error.message().contains(&world.text("target")), "{error}");

    let Some(other) = World::new().await else { return };
    symlink(other.device(), world.path("devices").join(&other.serial)).unwrap();
    let request = NodeUnpublishVolumeRequest {
        volume_id: other.volume(),
        target_path: world.text("target"),
    };
    let error = world
        .service
        .node_unpublish_volume(Request::new(request))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(is_mounted(&world.path("target")));
}

#[tokio::test]
async fn an_unknown_volume_id_unmounts_nothing() {
    for capability in [
        writer_capability("ext4"),
        writer_capability("btrfs"),
        block_capability(),
    ] {
        let Some(world) = World::new().await else { return };
        world.stage(&capability).await.unwrap();
        world.publish(&capability, "target", false).await.unwrap();
        let volume_id = "d-unknown".to_owned();
        let request = NodeUnpublishVolumeRequest {
            volume_id: volume_id.clone(),
            target_path: world.text("target"),
        };
        let request = Request::new(request);
        let error = world.service.node_unpublish_volume(request).await;
        let error = error.map(drop).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
        assert!(
            error.message().contains(&world.image().display().to_string()),
            "{error}"
        );
        assert!(is_mounted(&world.path("target")), "{error}");
        if capability != block_capability() {
            let request = Request::new(NodeUnstageVolumeRequest {
                volume_id,
                staging_target_path: world.text("staging"),
            });
            let error = world.service.node_unstage_volume(request).await;
            assert_eq!(error.unwrap_err().code(), Code::FailedPrecondition);
            assert!(is_mounted(&world.path("staging")));
        }
        world.unpublish("target").await.unwrap();
        world.unstage().await.unwrap();
    }
}

#[tokio::test]
async fn a_mounted_disk_without_its_symlink_is_unmounted() {
    for capability in [writer_capability("ext4"), block_capability()] {
        let Some(world) = World::new().await else { return };
        world.stage(&capability).await.unwrap();
        world.publish(&capability, "target", false).await.unwrap();
        match capability == block_capability() {
            // A bind mount of the device node alone would not keep the device.
            true => fs::remove_file(world.link()).unwrap(),
            false => world.force_detach().await,
        }
        world.unpublish("target").await.unwrap();
        world.unstage().await.unwrap();
        assert!(!world.path("target").exists() && !is_mounted(&world.path("staging")));
    }
}

#[tokio::test]
async fn targets_that_are_symlinks_or_contain_files_are_kept() {
    let Some(world) = World::new().await else { return };
    let capability = writer_capability("ext4");
    symlink(world.dir.path(), world.path("staging")).unwrap();
    let error = world.stage(&capability).await.unwrap_err();
    assert!(error.message().contains("a symlink"), "{error}");
    fs::remove_file(world.path("staging")).unwrap();

    fs::create_dir(world.path("target")).unwrap();
    fs::write(world.path("target/keep"), "x").unwrap();
    assert!(world.unpublish("target").await.is_err());
    assert!(world.path("target/keep").exists());
}

#[tokio::test]
async fn the_error_of_a_busy_target_names_mounts_and_how_to_find_processes() {
    let Some(world) = World::new().await else { return };
    let capability = writer_capability("ext4");
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    let open = fs::File::create(world.path("target/file")).unwrap();
    let error = world.unpublish_within(SHORT_TIMEOUT, "target").await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    let command = format!("`fuser -vm {}`", world.text("target"));
    for word in ["DEVICE_IN_USE", "in use by a process", &command] {
        assert!(error.message().contains(word), "{word}: {error}");
    }
    assert!(is_mounted(&world.path("target")));
    sh(&format!("mount -t tmpfs none {}", world.text("staging/lost+found"))).await;
    let error = world.unstage_within(SHORT_TIMEOUT).await.unwrap_err();
    assert!(error.message().contains(&world.text("target")), "{error}");
    let (unpublished, ()) = tokio::join!(world.unpublish("target"), async { drop(open) });
    unpublished.unwrap();
    let error = world.unstage_within(SHORT_TIMEOUT).await.unwrap_err();
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
    let Some(world) = World::new().await else { return };
    world.stage(&writer_capability("ext4")).await.unwrap();
    let pid = start_in_new_namespace("").await;
    sh(&format!("grep -F {} /proc/{pid}/mountinfo", world.text("staging"))).await;
    world.unstage_within(SHORT_TIMEOUT).await.unwrap();
    let device = world.device();
    sh(&format!("mkfs.ext4 -q -F {}", device)).await;
    sh(&format!("kill {pid}")).await;
}

#[tokio::test]
async fn an_open_file_in_another_namespace_blocks_unstaging() {
    let Some(world) = World::new().await else { return };
    world.stage(&writer_capability("ext4")).await.unwrap();
    let pid = start_in_new_namespace("").await;
    // Opened in the other namespace, so that the mount of this one is not busy.
    let file = world.text("staging/file");
    let start = format!(
        "setsid nsenter -m -t {pid} bash -c 'exec sleep 120 3> {file}' < /dev/null > /dev/null 2>&1 & p=$!
         until grep -q sleep /proc/$p/comm; do sleep 0.01; done; echo $p"
    );
    let holder = sh(&start).await;
    let command = format!("`fuser -vm {}`", world.device());
    for _ in 0..2 {
        let error = world.unstage_within(SHORT_TIMEOUT).await.unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
        assert!(error.message().contains(&command), "{error}");
    }
    // kubelet starts the next pod on this node.
    let error = world.stage(&writer_capability("ext4")).await.unwrap_err();
    for name in ["DEVICE_IN_USE", "staging", &command] {
        assert!(error.message().contains(name), "no {name:?}: {error}");
    }
    let end = format!("kill {holder} {pid}");
    let (unstaged, _) = tokio::join!(world.unstage(), sh(&end));
    unstaged.unwrap();
    let device = world.device();
    sh(&format!("e2fsck -f -n {}", device)).await;
    sh(&format!("mkfs.ext4 -q -F {}", device)).await;
}

#[tokio::test]
async fn partially_unmounted_volumes_are_cleaned_up() {
    let Some(world) = World::new().await else { return };
    let capability = writer_capability("ext4");
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    // Stacked mounts.
    sh(&format!("mount --bind {0} {0}", world.text("target"))).await;
    sh(&format!(
        "mount --bind {} {}",
        world.text("staging"),
        world.text("target")
    ))
    .await;
    world.unpublish("target").await.unwrap();
    assert!(!world.path("target").exists());
    // A file instead of a directory.
    fs::write(world.path("target"), "").unwrap();
    world.unpublish("target").await.unwrap();
    fs::write(world.path("target"), "data").unwrap();
    let error = world.unpublish("target").await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(error.message().contains("TARGET_CONFLICT"), "{error}");
    assert_eq!(fs::read_to_string(world.path("target")).unwrap(), "data");
    // Unmounted manually, and the directory is removed.
    sh(&format!("umount {}", world.text("staging"))).await;
    fs::remove_dir(world.path("staging")).unwrap();
    world.unstage().await.unwrap();
}

#[tokio::test]
async fn a_busy_filesystem_that_is_shut_down_is_unmounted() {
    let Some(world) = World::new().await else { return };
    let capability = writer_capability("xfs");
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    let open = fs::File::create(world.path("target/file")).unwrap();
    sh(&format!("xfs_io -x -c shutdown {}", world.text("staging"))).await;
    world.unpublish_within(SHORT_TIMEOUT, "target").await.unwrap();
    assert!(!world.path("target").exists());
    // The kernel still uses the device.
    let error = world.unstage_within(SHORT_TIMEOUT).await.unwrap_err();
    assert!(error.message().contains("in use by a process"), "{error}");
    drop(open);
    world.unstage().await.unwrap();
    world.stage(&capability).await.unwrap();
    world.unstage().await.unwrap();
}

#[tokio::test]
async fn the_node_of_a_removed_device_is_unmounted() {
    let requirements = "command -v python3 && findmnt -n -t devtmpfs /dev";
    if !crate::common::shell::can_run("the removed device node", requirements).await {
        return;
    }
    let Some(world) = World::without_device().await else {
        return;
    };
    world.attach_reserved().await;
    world.stage(&block_capability()).await.unwrap();
    world.publish(&block_capability(), "target", false).await.unwrap();
    world.unplug().await;
    let removed = format!("//deleted {} ", world.text("target"));
    sh(&format!("grep -F '{removed}' /proc/self/mountinfo")).await;
    world.unpublish("target").await.unwrap();
    world.unstage().await.unwrap();
    assert!(!world.path("target").exists());
}
