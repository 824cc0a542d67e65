//! Publishing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use tonic::Code;

use crate::service::kit::{
    SIZE, World, block_capability, is_mounted, mount_capability, mount_options, with_flags, writer_capability,
};

#[tokio::test]
async fn a_block_volume_is_published_as_a_device_node() {
    let Some(world) = World::new().await else { return };
    world.stage(&block_capability()).await.unwrap();
    for _ in 0..2 {
        world.publish(&block_capability(), "target", false).await.unwrap();
    }
    assert_eq!(world.total_bytes("target").await.unwrap(), SIZE);
    fs::OpenOptions::new()
        .write(true)
        .open(world.path("target"))
        .and_then(|mut node| std::io::Write::write_all(&mut node, &[7; 4096]))
        .unwrap();
    world.grow_device(2 * SIZE).await;
    let size = world.expand("target", 2 * SIZE).await.unwrap();
    assert_eq!(u64::try_from(size), Ok(2 * SIZE));
    let error = world.unstage().await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(is_mounted(&world.path("target")));
    world.unpublish("target").await.unwrap();
    world.unstage().await.unwrap();
    assert!(!world.path("target").exists());
    // Unpublishing wrote the cached data without a sync by the pod.
    assert_eq!(fs::read(world.image()).unwrap()[..4096], [7; 4096]);
}

#[tokio::test]
async fn a_block_volume_that_is_published_read_only_rejects_writes() {
    let Some(world) = World::new().await else { return };
    world.stage(&block_capability()).await.unwrap();
    let mut earlier = fs::OpenOptions::new().write(true).open(world.device()).unwrap();
    std::io::Write::write_all(&mut earlier, &[1; 4096]).unwrap();
    world.publish(&block_capability(), "target", true).await.unwrap();
    assert!(
        std::io::Write::write_all(&mut earlier, &[1; 4096]).is_err(),
        "the device rejects writes through an open file"
    );
    drop(earlier);
    let write = |path: PathBuf| {
        let node = fs::OpenOptions::new().write(true).open(path);
        // The kernel may open a read-only device for writing; the write fails then.
        node.and_then(|mut node| {
            std::io::Write::write_all(&mut node, &[7; 4096])?;
            node.sync_all()
        })
    };
    assert!(write(world.path("target")).is_err());
    let error = world.publish(&block_capability(), "second", false).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    world.unpublish("target").await.unwrap();
    world.publish(&block_capability(), "second", false).await.unwrap();
    assert!(write(world.path("second")).is_ok());
}

#[tokio::test]
async fn read_only_volumes_reject_writes_at_every_path() {
    let Some(world) = World::new().await else { return };
    let reader = mount_capability("ext4", Mode::SingleNodeReaderOnly);
    let words = ["blank", "never formats"];
    let before = world.hash().await;
    let error = world.stage(&reader).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    for word in words {
        assert!(error.message().contains(word), "{error}");
    }
    assert_eq!(world.hash().await, before);

    let writer = writer_capability("ext4");
    world.stage(&writer).await.unwrap();
    world.publish(&writer, "target", true).await.unwrap();
    assert!(fs::write(world.path("target/file"), "x").is_err());
    fs::write(world.path("staging/file"), "x").unwrap();
    let error = world.publish(&writer, "target", false).await.unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists, "{error}");
    let error = world.stage(&reader).await.unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists, "{error}");
    world.unpublish("target").await.unwrap();
    world.unstage().await.unwrap();

    world.stage(&reader).await.unwrap();
    let error = world.publish(&writer, "target", false).await.unwrap_err();
    assert!(error.message().contains("staged read-only"), "{error}");
    world.publish(&reader, "target", false).await.unwrap();
    for file in ["staging/file", "target/file"] {
        assert!(fs::write(world.path(file), "y").is_err(), "{file}");
    }
}

#[tokio::test]
async fn single_writer_allows_one_target() {
    let Some(world) = World::new().await else { return };
    let single = mount_capability("ext4", Mode::SingleNodeSingleWriter);
    world.stage(&single).await.unwrap();
    world.publish(&single, "target", false).await.unwrap();
    let error = world.publish(&single, "second", false).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(!world.path("second").exists());
    let several = mount_capability("ext4", Mode::SingleNodeMultiWriter);
    world.publish(&several, "second", false).await.unwrap();
}

#[tokio::test]
async fn a_target_may_have_stricter_flags_than_staging() {
    let Some(world) = World::new().await else { return };
    let staged = with_flags(writer_capability("ext4"), &["nosuid"]);
    world.stage(&staged).await.unwrap();
    let strict = with_flags(writer_capability("ext4"), &["nosuid", "noexec", "noatime"]);
    for _ in 0..2 {
        world.publish(&strict, "target", true).await.unwrap();
    }
    let found = mount_options(&world.path("target"));
    for option in ["ro", "nosuid", "noexec", "noatime"] {
        assert!(found.iter().any(|found| found == option), "{option}: {found:?}");
    }
    world.publish(&staged, "second", false).await.unwrap();
    let found = mount_options(&world.path("second"));
    assert!(found.contains(&"rw".to_owned()) && !found.contains(&"noexec".to_owned()));
    let lax = with_flags(writer_capability("ext4"), &["suid"]);
    let error = world.publish(&lax, "third", false).await.unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists, "{error}");
    assert!(!world.path("third").exists());
}

#[tokio::test]
async fn paths_outside_kubelet_dir_or_with_a_symlink_are_rejected() {
    let Some(world) = World::new().await else { return };
    let capability = writer_capability("ext4");
    world.stage(&capability).await.unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = elsewhere.path().join("target");
    let error = world
        .publish(&capability, outside.to_str().unwrap(), false)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    for word in ["target_path", outside.to_str().unwrap(), "--kubelet-dir"] {
        assert!(error.message().contains(word), "{word}: {error}");
    }
    symlink(elsewhere.path(), world.path("pod")).unwrap();
    for readonly in [false, true] {
        let error = world.publish(&capability, "pod/target", readonly).await.unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
        assert!(error.message().contains("is a symlink"), "{error}");
    }
    assert!(world.unpublish("pod/target").await.is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
