//! A disk that vanishes while it is in use.

use std::time::Duration;

use tonic::{Code, Status};

use crate::common::failure_table::{FailureRow, Observed};
use crate::common::wait::until;
use crate::disk::{Kind, MIB};
use crate::machine::Guest;
use crate::node::{AMPLE, block, filesystem};

/// The disk goes while it is mounted and written to; all is cleaned up; the disk comes again with what
/// had reached it.
async fn vanishes_and_comes_back(test: &str, kind: Kind, fs_type: &str) {
    let Some(guest) = Guest::fresh(test).await else {
        return;
    };
    let node = guest.node().await;
    let attached = guest.attach_new(kind, "bp1vanishing00000001", 320 * MIB).await;
    let other = guest.attach_new(kind, "bp1remaining00000001", 320 * MIB).await;
    let volume = node.volume(&attached.disk, filesystem(fs_type));
    let remaining = node.volume(&other.disk, filesystem(fs_type));
    volume.come().await;
    remaining.come().await;
    let file = format!("{}/file", volume.target);
    guest.write(&file, "it has reached the disk").await;
    // Never synced: the kernel has it when the disk goes.
    guest.sh(&format!("echo lost > {}/lost", volume.target)).await;
    let disk = attached.detach().await;
    let mut second = volume.clone();
    second.target = volume.target.replace("/mount", "/second");
    let health = volume.health().await.unwrap();
    let stats = volume.stats().await.unwrap();
    // On a busy machine the caller's timeout may pass before the response arrives, and the call continues.
    let publish = until("the node plugin responds", AMPLE, async || {
        let published = second.publish_within(Duration::from_secs(5)).await;
        let is_late = |error: &Status| [Code::Cancelled, Code::Aborted].contains(&error.code());
        (!published.as_ref().is_err_and(is_late)).then_some(published)
    })
    .await;
    second.unpublish().await.unwrap();
    volume.unpublish().await.unwrap();
    let unstage = volume.unstage().await;
    FailureRow::of("device removed").check(&Observed {
        publish,
        unstage,
        health,
        stats,
    });
    volume.leave().await;
    let left = guest
        .sh(&format!("grep {} /proc/self/mountinfo || true", volume.id))
        .await;
    assert_eq!(left, "", "it is still mounted");
    let attached = guest.attach(&disk).await;
    volume.come().await;
    assert_eq!(guest.read(&file).await, "it has reached the disk");
    guest.write(&file, "it can be written to").await;
    volume.stats().await.unwrap();
    assert_eq!(volume.health().await.unwrap(), []);
    // The neighbour has noticed nothing.
    let path = format!("{}/file", remaining.target);
    guest.write(&path, "neighbour").await;
    remaining.leave().await;
    assert_ne!(other.detach().await.count("neighbour"), 0);
    volume.leave().await;
    guest.has_no_mounts().await;
    attached.detach().await;
}

#[tokio::test]
async fn ext4_on_a_disk_that_vanished_is_cleaned_up_and_comes_back() {
    let test = "ext4_on_a_disk_that_vanished_is_cleaned_up_and_comes_back";
    vanishes_and_comes_back(test, Kind::Virtio, "ext4").await;
}

#[tokio::test]
async fn ext4_on_an_nvme_disk_that_vanished_is_cleaned_up_and_comes_back() {
    let test = "ext4_on_an_nvme_disk_that_vanished_is_cleaned_up_and_comes_back";
    vanishes_and_comes_back(test, Kind::Nvme, "ext4").await;
}

#[tokio::test]
async fn xfs_on_a_disk_that_vanished_is_cleaned_up_and_comes_back() {
    let test = "xfs_on_a_disk_that_vanished_is_cleaned_up_and_comes_back";
    vanishes_and_comes_back(test, Kind::Virtio, "xfs").await;
}

#[tokio::test]
async fn btrfs_on_a_disk_that_vanished_is_cleaned_up_and_comes_back() {
    let test = "btrfs_on_a_disk_that_vanished_is_cleaned_up_and_comes_back";
    vanishes_and_comes_back(test, Kind::Virtio, "btrfs").await;
}

#[tokio::test]
async fn a_raw_block_volume_whose_disk_vanished_is_cleaned_up_and_comes_back() {
    let test = "a_raw_block_volume_whose_disk_vanished_is_cleaned_up_and_comes_back";
    let Some(guest) = Guest::fresh(test).await else {
        return;
    };
    let node = guest.node().await;
    let attached = guest.attach_new(Kind::Virtio, "bp1vanishing00000002", 64 * MIB).await;
    let volume = node.volume(&attached.disk, block());
    volume.come().await;
    let disk = attached.detach().await;
    // Another disk takes its place, and the number of its device with it.
    let stranger = guest.attach_new(Kind::Virtio, "bp1stranger000000001", 64 * MIB).await;
    volume.leave().await;
    guest.has_no_mounts().await;
    let attached = guest.attach(&disk).await;
    volume.come().await;
    let script = format!("echo returned | dd of={} conv=fsync,notrunc status=none", volume.target);
    guest.sh(&script).await;
    volume.leave().await;
    assert_eq!(attached.detach().await.count("returned"), 1);
    assert_eq!(stranger.detach().await.count("returned"), 0);
}
