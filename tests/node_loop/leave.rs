//! Unpublishing and unstaging: what comes off, and what stays.

use std::fs;
use std::os::unix::fs::symlink;

use diskplugin::csi::proto::node_server::Node as _;
use diskplugin::csi::proto::{NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest};
use tonic::{Code, Request};

use crate::kit::{BRIEF, World, block, can_run, is_mounted, sh, writer};

#[tokio::test]
async fn what_is_published_is_not_unstaged_and_what_is_mounted_is_not_deleted() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop35").await;
    let capability = writer("ext4");
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    let error = world.unstage().await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(error.message().contains(&world.text("target")), "{error}");

    let other = World::new("nodeloop36").await;
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
async fn an_id_that_no_disk_has_takes_nothing_off() {
    if !can_run().await {
        return;
    }
    for (serial, capability) in [
        ("nodeloop41", writer("ext4")),
        ("nodeloop42", writer("btrfs")),
        ("nodeloop43", block()),
    ] {
        let world = World::new(serial).await;
        world.stage(&capability).await.unwrap();
        world.publish(&capability, "target", false).await.unwrap();
        let volume_id = "d-somebodyelse".to_owned();
        let request = NodeUnpublishVolumeRequest {
            volume_id: volume_id.clone(),
            target_path: world.text("target"),
        };
        let request = Request::new(request);
        let error = world.service.node_unpublish_volume(request).await;
        let error = error.map(drop).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
        assert!(
            error
                .message()
                .contains(&world.image().display().to_string()),
            "{error}"
        );
        assert!(is_mounted(&world.path("target")), "{error}");
        if capability != block() {
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
async fn a_disk_whose_link_is_gone_while_it_is_mounted_still_comes_off() {
    if !can_run().await {
        return;
    }
    for (serial, capability) in [("nodeloop44", writer("ext4")), ("nodeloop45", block())] {
        let world = World::new(serial).await;
        world.stage(&capability).await.unwrap();
        world.publish(&capability, "target", false).await.unwrap();
        match capability == block() {
            // Its node alone would not keep the device.
            true => fs::remove_file(world.link()).unwrap(),
            false => world.tear_out().await,
        }
        world.unpublish("target").await.unwrap();
        world.unstage().await.unwrap();
        assert!(!world.path("target").exists() && !is_mounted(&world.path("staging")));
    }
}

#[tokio::test]
async fn targets_that_are_links_or_hold_files_are_left_alone() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop37").await;
    let capability = writer("ext4");
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
async fn a_target_in_use_names_who_uses_it_and_comes_off_afterwards() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop60").await;
    let capability = writer("ext4");
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    let open = fs::File::create(world.path("target/file")).unwrap();
    let error = world.unpublish_within(BRIEF, "target").await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    let own = format!("process {} (", std::process::id());
    let file = format!("has {} open", world.text("target/file"));
    for word in ["DEVICE_IN_USE", &own, &file] {
        assert!(error.message().contains(word), "{word}: {error}");
    }
    assert!(is_mounted(&world.path("target")));
    sh(&format!(
        "mount -t tmpfs nodeloop60 {}",
        world.text("staging/lost+found")
    ))
    .await;
    let error = world.unstage_within(BRIEF).await.unwrap_err();
    assert!(error.message().contains(&world.text("target")), "{error}");
    let (unpublished, ()) = tokio::join!(world.unpublish("target"), async { drop(open) });
    unpublished.unwrap();
    let error = world.unstage_within(BRIEF).await.unwrap_err();
    let below = format!("a mount at {}", world.text("staging/lost+found"));
    assert!(error.message().contains(&below), "{error}");
    sh(&format!("umount {}", world.text("staging/lost+found"))).await;
    world.unstage().await.unwrap();
}

#[tokio::test]
async fn unstaging_waits_for_a_mount_in_another_namespace_and_names_it() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop61").await;
    world.stage(&writer("ext4")).await.unwrap();
    let pid = sh(
        "setsid unshare -m sleep 120 < /dev/null > /dev/null 2>&1 & p=$!
         until grep -q sleep /proc/$p/comm; do sleep 0.01; done; echo $p",
    )
    .await;
    for _ in 0..2 {
        let error = world.unstage_within(BRIEF).await.unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
        let holder =
            format!("the mount namespace of process {pid} (sleep), where it is mounted at");
        assert!(error.message().contains(&holder), "{error}");
        assert!(!is_mounted(&world.path("staging")));
    }
    let end = format!("kill {pid}");
    let (unstaged, _) = tokio::join!(world.unstage(), sh(&end));
    unstaged.unwrap();
    let device = world.device();
    sh(&format!("mkfs.ext4 -q -F {}", device.display())).await;
}

#[tokio::test]
async fn half_done_states_are_finished() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop62").await;
    let capability = writer("ext4");
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    // Mounted twice, and a bind of a bind.
    sh(&format!("mount --bind {0} {0}", world.text("target"))).await;
    sh(&format!(
        "mount --bind {} {}",
        world.text("staging"),
        world.text("target")
    ))
    .await;
    world.unpublish("target").await.unwrap();
    assert!(!world.path("target").exists());
    // A file where a directory was.
    fs::write(world.path("target"), "").unwrap();
    world.unpublish("target").await.unwrap();
    fs::write(world.path("target"), "data").unwrap();
    let error = world.unpublish("target").await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(error.message().contains("TARGET_CONFLICT"), "{error}");
    assert_eq!(fs::read_to_string(world.path("target")).unwrap(), "data");
    // Unmounted by hand, and the directory gone.
    sh(&format!("umount {}", world.text("staging"))).await;
    fs::remove_dir(world.path("staging")).unwrap();
    world.unstage().await.unwrap();
}

#[tokio::test]
async fn a_filesystem_that_was_shut_down_comes_off_though_it_is_in_use() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop63").await;
    let capability = writer("xfs");
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    let open = fs::File::create(world.path("target/file")).unwrap();
    sh(&format!("xfs_io -x -c shutdown {}", world.text("staging"))).await;
    world.unpublish_within(BRIEF, "target").await.unwrap();
    assert!(!world.path("target").exists());
    // It is still in the kernel, and who keeps it is told.
    let error = world.unstage_within(BRIEF).await.unwrap_err();
    let own = format!("in use by process {} (", std::process::id());
    assert!(error.message().contains(&own), "{error}");
    drop(open);
    world.unstage().await.unwrap();
    world.stage(&capability).await.unwrap();
    world.unstage().await.unwrap();
}

#[tokio::test]
async fn the_node_of_a_device_that_left_comes_off() {
    let needs = "command -v python3 && findmnt -n -t devtmpfs /dev";
    if !can_run().await || !crate::shell::can_run("the node that leaves", needs).await {
        return;
    }
    let world = World::without_device("nodeloop64");
    world.attach_apart().await;
    world.stage(&block()).await.unwrap();
    world.publish(&block(), "target", false).await.unwrap();
    world.unplug().await;
    let removed = format!("//deleted {} ", world.text("target"));
    sh(&format!("grep -F '{removed}' /proc/self/mountinfo")).await;
    world.unpublish("target").await.unwrap();
    world.unstage().await.unwrap();
    assert!(!world.path("target").exists());
}
