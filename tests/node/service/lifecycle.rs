//! The lifecycle of a volume on each filesystem.

use std::fs;

use crate::service::kit::{SIZE, World, is_mounted, writer_capability};

/// Stages a blank disk, writes, unstages, stages again and reads.
async fn content_survives(fs_type: &str) {
    let Some(world) = World::new().await else { return };
    let capability = writer_capability(fs_type);
    for round in 0..2 {
        for _ in 0..2 {
            world.stage(&capability).await.unwrap();
        }
        for _ in 0..2 {
            world.publish(&capability, "target", false).await.unwrap();
        }
        let file = world.path("target/file");
        if round == 0 {
            fs::write(&file, fs_type).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), fs_type);
        assert!(world.total_bytes("target").await.unwrap() > SIZE / 2);
        world.unpublish("target").await.unwrap();
        world.unpublish("target").await.unwrap();
        assert!(!world.path("target").exists());
        world.unstage().await.unwrap();
        world.unstage().await.unwrap();
        assert!(!is_mounted(&world.path("staging")));
        world.detach().await;
        world.attach().await;
    }
}

#[tokio::test]
async fn content_survives_on_ext4() {
    content_survives("ext4").await;
}

#[tokio::test]
async fn content_survives_on_ext3() {
    content_survives("ext3").await;
}

#[tokio::test]
async fn content_survives_on_xfs() {
    content_survives("xfs").await;
}

#[tokio::test]
async fn content_survives_on_btrfs() {
    content_survives("btrfs").await;
}

#[tokio::test]
async fn a_target_path_may_contain_a_space() {
    let Some(world) = World::new().await else { return };
    let capability = writer_capability("ext4");
    world.stage(&capability).await.unwrap();
    for _ in 0..2 {
        world.publish(&capability, "a target", false).await.unwrap();
    }
    world.unpublish("a target").await.unwrap();
    assert!(!world.path("a target").exists());
}
