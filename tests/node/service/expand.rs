//! Online and offline expansion.

use std::fs;

use tonic::Code;

use crate::service::kit::{SHORT_TIMEOUT, SIZE, World, assert_fails};

crate::common::rows! { check_online_expansion:
    xfs_grows_while_it_is_published("xfs"),
    btrfs_grows_while_it_is_published("btrfs"),
}

async fn check_online_expansion(fs_type: &str) {
    let Some(world) = World::new(fs_type).await else { return };
    world.mount().await;
    let before = world.total_bytes().await.unwrap();
    let late = world.within(SHORT_TIMEOUT).with(None).expand(2 * SIZE).await;
    assert_fails(late, Code::DeadlineExceeded, &[]);
    world.disk.resize(2 * SIZE).await;
    for _ in 0..2 {
        assert_eq!(world.expand(2 * SIZE).await.unwrap(), 2 * SIZE);
    }
    let after = world.total_bytes().await.unwrap();
    assert!(after - before > SIZE * 3 / 4, "{before} {after}");
    world.stage().await.unwrap();
    let grown = ["xfs_growfs", "btrfs filesystem resize"].map(|tool| world.exec.count(tool));
    assert_eq!(grown.iter().sum::<usize>(), 1, "repeated calls grow nothing");
}

#[tokio::test]
async fn ext_grows_while_mounted_or_the_error_names_the_capability() {
    let Some(world) = World::new("ext4").await else { return };
    world.stage().await.unwrap();
    world.disk.resize(2 * SIZE).await;
    match world.at("staging").with(None).expand(2 * SIZE).await {
        Ok(size) => assert_eq!(size, 2 * SIZE),
        Err(error) => assert!(error.message().contains("CAP_SYS_RESOURCE"), "{error}"),
    }
}

/// The disk grows while it is attached, and while it is detached.
#[tokio::test]
async fn staging_completes_an_offline_expansion() {
    for fs_type in ["ext4", "ext3", "xfs", "btrfs"] {
        let Some(world) = World::new(fs_type).await else { return };
        let staged = world.at("staging");
        staged.stage().await.unwrap();
        fs::write(world.path("staging/file"), fs_type).unwrap();
        for size in [2 * SIZE, 3 * SIZE] {
            let before = staged.total_bytes().await.unwrap();
            staged.unstage().await.unwrap();
            if size == 3 * SIZE {
                world.disk.detach().await;
            }
            world.disk.resize(size).await;
            if size == 3 * SIZE {
                world.disk.attach().await;
            }
            staged.stage().await.unwrap();
            let after = staged.total_bytes().await.unwrap();
            assert!(after - before > SIZE * 3 / 4, "{fs_type}: {before} {after}");
            let text = fs::read_to_string(world.path("staging/file")).unwrap();
            assert_eq!(text, fs_type);
        }
    }
}

#[tokio::test]
async fn expand_fails_beyond_the_limit_and_ignores_smaller_sizes() {
    let Some(world) = World::new("xfs").await else { return };
    world.mount().await;
    for required in [0, 1, SIZE] {
        assert_eq!(world.expand(required).await.unwrap(), SIZE);
    }
    assert_fails(world.expand_to(1, SIZE - 1).await, Code::OutOfRange, &[]);
}
