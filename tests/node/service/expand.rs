//! Online and offline expansion.

use std::fs;

use tonic::Code;

use crate::service::kit::{SHORT_TIMEOUT, SIZE, World, writer_capability};

#[tokio::test]
async fn xfs_grows_while_it_is_published() {
    check_online_expansion("xfs").await;
}

#[tokio::test]
async fn btrfs_grows_while_it_is_published() {
    check_online_expansion("btrfs").await;
}

async fn check_online_expansion(fs_type: &str) {
    let Some(world) = World::new().await else { return };
    let capability = writer_capability(fs_type);
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    let before = world.total_bytes("target").await.unwrap();
    let error = world
        .expand_within(SHORT_TIMEOUT, "target", 2 * SIZE)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    world.grow_device(2 * SIZE).await;
    for _ in 0..2 {
        let size = world.expand("target", 2 * SIZE).await.unwrap();
        assert_eq!(u64::try_from(size), Ok(2 * SIZE));
    }
    let after = world.total_bytes("target").await.unwrap();
    assert!(after - before > SIZE * 3 / 4, "{before} {after}");
    world.stage(&capability).await.unwrap();
    let grown = ["xfs_growfs", "btrfs filesystem resize"].map(|tool| world.exec.count(tool));
    assert_eq!(grown.iter().sum::<usize>(), 1, "repeated calls grow nothing");
}

#[tokio::test]
async fn ext_grows_while_mounted_or_the_error_names_the_capability() {
    let Some(world) = World::new().await else { return };
    world.stage(&writer_capability("ext4")).await.unwrap();
    world.grow_device(2 * SIZE).await;
    match world.expand("staging", 2 * SIZE).await {
        Ok(size) => assert_eq!(u64::try_from(size), Ok(2 * SIZE)),
        Err(error) => assert!(error.message().contains("CAP_SYS_RESOURCE"), "{error}"),
    }
}

#[tokio::test]
async fn staging_completes_an_offline_expansion() {
    for fs_type in ["ext4", "ext3", "xfs", "btrfs"] {
        let Some(world) = World::new().await else { return };
        let capability = writer_capability(fs_type);
        world.stage(&capability).await.unwrap();
        fs::write(world.path("staging/file"), fs_type).unwrap();
        let before = world.total_bytes("staging").await.unwrap();
        world.unstage().await.unwrap();
        world.grow_device(2 * SIZE).await;
        world.stage(&capability).await.unwrap();
        let after = world.total_bytes("staging").await.unwrap();
        assert!(after - before > SIZE * 3 / 4, "{fs_type}: {before} {after}");
        let text = fs::read_to_string(world.path("staging/file")).unwrap();
        assert_eq!(text, fs_type);
    }
}
