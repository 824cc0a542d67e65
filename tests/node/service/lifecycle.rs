//! The lifecycle of a volume on each filesystem.

use std::fs;

use crate::service::kit::{SIZE, World, is_mounted};

crate::common::rows! { content_survives:
    content_survives_on_ext4("ext4"),
    content_survives_on_ext3("ext3"),
    content_survives_on_xfs("xfs"),
    content_survives_on_btrfs("btrfs"),
}

/// Stages a blank disk, writes, unstages, stages again and reads.
async fn content_survives(fs_type: &str) {
    let Some(world) = World::new(fs_type).await else { return };
    for round in 0..2 {
        for _ in 0..2 {
            world.stage().await.unwrap();
        }
        for _ in 0..2 {
            world.publish().await.unwrap();
        }
        let file = world.path("target/file");
        if round == 0 {
            fs::write(&file, fs_type).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), fs_type);
        assert!(world.total_bytes().await.unwrap() > SIZE / 2);
        world.unpublish().await.unwrap();
        world.unpublish().await.unwrap();
        assert!(!world.path("target").exists());
        world.unstage().await.unwrap();
        world.unstage().await.unwrap();
        assert!(!is_mounted(&world.path("staging")));
        world.disk.detach().await;
        world.disk.attach().await;
    }
}

#[tokio::test]
async fn a_target_path_may_contain_a_space() {
    let Some(world) = World::new("ext4").await else { return };
    world.stage().await.unwrap();
    let volume = world.at("a target");
    for _ in 0..2 {
        volume.publish().await.unwrap();
    }
    volume.unpublish().await.unwrap();
    assert!(!world.path("a target").exists());
}
