//! Publishing.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use tonic::Code;

use crate::service::kit::{NodeVolume, SIZE, World, assert_fails, is_mounted, mount_options};

#[tokio::test]
async fn a_block_volume_is_published_as_a_device_node() {
    let Some(world) = World::new("block").await else { return };
    world.stage().await.unwrap();
    for _ in 0..2 {
        world.publish().await.unwrap();
    }
    assert_eq!(world.total_bytes().await.unwrap(), SIZE);
    fs::OpenOptions::new()
        .write(true)
        .open(world.path("target"))
        .and_then(|mut node| node.write_all(&[7; 4096]))
        .unwrap();
    world.disk.resize(2 * SIZE).await;
    assert_eq!(world.expand(2 * SIZE).await.unwrap(), 2 * SIZE);
    assert_fails(world.unstage().await, Code::FailedPrecondition, &[]);
    assert!(is_mounted(&world.path("target")));
    world.unmount().await;
    assert!(!world.path("target").exists());
    // Unpublishing wrote the cached data without a sync by the pod.
    assert_eq!(fs::read(&world.disk.image).unwrap()[..4096], [7; 4096]);
}

#[tokio::test]
async fn a_block_volume_that_is_published_read_only_rejects_writes() {
    let Some(world) = World::new("block").await else { return };
    world.stage().await.unwrap();
    let mut earlier = fs::OpenOptions::new().write(true).open(world.disk.device()).unwrap();
    earlier.write_all(&[1; 4096]).unwrap();
    world.read_only().publish().await.unwrap();
    assert!(
        earlier.write_all(&[1; 4096]).is_err(),
        "the device rejects writes through an open file"
    );
    drop(earlier);
    let write = |path: PathBuf| {
        let node = fs::OpenOptions::new().write(true).open(path);
        // The kernel may open a read-only device for writing; the write fails then.
        node.and_then(|mut node| {
            node.write_all(&[7; 4096])?;
            node.sync_all()
        })
    };
    assert!(write(world.path("target")).is_err());
    let second = world.at("second");
    assert_fails(second.publish().await, Code::FailedPrecondition, &[]);
    world.unpublish().await.unwrap();
    second.publish().await.unwrap();
    assert!(write(world.path("second")).is_ok());
}

#[tokio::test]
async fn read_only_volumes_reject_writes_at_every_path() {
    let Some(world) = World::new("ext4").await else { return };
    let reader = world.with_mode(Mode::SingleNodeReaderOnly);
    let before = world.disk.hash().await;
    let parts = ["blank", "never formats"];
    assert_fails(reader.stage().await, Code::FailedPrecondition, &parts);
    assert_eq!(world.disk.hash().await, before);

    world.stage().await.unwrap();
    world.read_only().publish().await.unwrap();
    assert!(fs::write(world.path("target/file"), "x").is_err());
    fs::write(world.path("staging/file"), "x").unwrap();
    assert_fails(world.publish().await, Code::AlreadyExists, &[]);
    assert_fails(reader.stage().await, Code::AlreadyExists, &[]);
    world.unmount().await;

    reader.stage().await.unwrap();
    let error = world.publish().await.unwrap_err();
    assert!(error.message().contains("staged read-only"), "{error}");
    reader.publish().await.unwrap();
    for file in ["staging/file", "target/file"] {
        assert!(fs::write(world.path(file), "y").is_err(), "{file}");
    }
}

#[tokio::test]
async fn single_writer_allows_one_target() {
    let Some(world) = World::new("ext4").await else { return };
    let single = world.with_mode(Mode::SingleNodeSingleWriter);
    single.stage().await.unwrap();
    single.publish().await.unwrap();
    assert_fails(single.at("second").publish().await, Code::FailedPrecondition, &[]);
    assert!(!world.path("second").exists());
    let several = world.with_mode(Mode::SingleNodeMultiWriter);
    several.at("second").publish().await.unwrap();
}

#[tokio::test]
async fn a_target_may_have_stricter_flags_than_staging() {
    let Some(world) = World::new("ext4").await else { return };
    let staged = world.with_flags(&["nosuid"]);
    staged.stage().await.unwrap();
    let strict = world.with_flags(&["nosuid", "noexec", "noatime"]);
    for _ in 0..2 {
        strict.read_only().publish().await.unwrap();
    }
    let found = mount_options(&world.path("target"));
    for option in ["ro", "nosuid", "noexec", "noatime"] {
        assert!(found.iter().any(|found| found == option), "{option}: {found:?}");
    }
    staged.at("second").publish().await.unwrap();
    let found = mount_options(&world.path("second"));
    assert!(found.contains(&"rw".to_owned()) && !found.contains(&"noexec".to_owned()));
    let lax = world.with_flags(&["suid"]);
    assert_fails(lax.at("third").publish().await, Code::AlreadyExists, &[]);
    assert!(!world.path("third").exists());
}

#[tokio::test]
async fn paths_outside_kubelet_dir_or_with_a_symlink_are_rejected() {
    let Some(world) = World::new("ext4").await else { return };
    world.stage().await.unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().join("target").display().to_string();
    let parts = ["target_path", &outside, "--kubelet-dir"];
    assert_fails(world.at(&outside).publish().await, Code::InvalidArgument, &parts);
    symlink(elsewhere.path(), world.path("pod")).unwrap();
    for readonly in [false, true] {
        let volume = NodeVolume {
            readonly,
            ..world.at("pod/target")
        };
        assert_fails(volume.publish().await, Code::FailedPrecondition, &["is a symlink"]);
    }
    assert!(world.at("pod/target").unpublish().await.is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
