//! A disk that is removed while it is in use.

use std::time::Duration;

use tonic::{Code, Status};

use crate::common::csi::filesystem;
use crate::common::failure_table::{FailureRow, Observed};
use crate::common::request::block;
use crate::common::wait::until;
use crate::disk::{Kind, MIB};
use crate::hotplug::started;
use crate::node::CALL_TIMEOUT;

/// The disk is removed while it is mounted and written to. The volume can be cleaned up, and after the disk is attached
/// again it has all synced data.
async fn is_removed_and_restored(kind: Kind, fs_type: &str) {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(kind, "bp1vanishing00000001", 320 * MIB).await;
    let other = guest.attach_new(kind, "bp1remaining00000001", 320 * MIB).await;
    let volume = node.volume(&attached.disk, filesystem(fs_type));
    let remaining = node.volume(&other.disk, filesystem(fs_type));
    volume.mount().await;
    remaining.mount().await;
    let file = volume.file();
    guest.write(&file, "synced to the disk").await;
    // Not synced: still in the page cache when the disk is removed.
    guest.sh(&format!("echo lost > {}/lost", volume.target)).await;
    let disk = attached.detach().await;
    let mut second = volume.clone();
    second.target = volume.target.replace("/mount", "/second");
    let health = volume.health().await.unwrap();
    let stats = volume.stats().await.unwrap();
    // On a busy machine the caller's timeout may pass before the response arrives, and the call continues.
    let publish = until("the node plugin responds", CALL_TIMEOUT, async || {
        let published = second.within(Duration::from_secs(5)).publish().await;
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
    volume.unmount().await;
    let left = guest
        .sh(&format!("grep {} /proc/self/mountinfo || true", volume.id))
        .await;
    assert_eq!(left, "", "still mounted");
    let attached = guest.attach(&disk).await;
    volume.mount().await;
    assert_eq!(guest.read(&file).await, "synced to the disk");
    guest.write(&file, "written after the return").await;
    volume.stats().await.unwrap();
    assert_eq!(volume.health().await.unwrap(), []);
    // The other volume is not affected.
    let path = remaining.file();
    guest.write(&path, "other volume").await;
    remaining.unmount().await;
    assert_ne!(other.detach().await.count("other volume"), 0);
    volume.unmount().await;
    guest.has_no_mounts().await;
    attached.detach().await;
}

crate::common::rows! { is_removed_and_restored:
    ext4_on_a_removed_disk_is_cleaned_up_and_restored(Kind::Virtio, "ext4"),
    ext4_on_a_removed_nvme_disk_is_cleaned_up_and_restored(Kind::Nvme, "ext4"),
    xfs_on_a_removed_disk_is_cleaned_up_and_restored(Kind::Virtio, "xfs"),
    btrfs_on_a_removed_disk_is_cleaned_up_and_restored(Kind::Virtio, "btrfs"),
}

#[tokio::test]
async fn a_raw_block_volume_on_a_removed_disk_is_cleaned_up_and_restored() {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1vanishing00000002", 64 * MIB).await;
    let volume = node.volume(&attached.disk, block());
    volume.mount().await;
    let disk = attached.detach().await;
    // Another disk gets its slot and its device number.
    let unrelated = guest.attach_new(Kind::Virtio, "bp1stranger000000001", 64 * MIB).await;
    volume.unmount().await;
    guest.has_no_mounts().await;
    let attached = guest.attach(&disk).await;
    volume.mount().await;
    let script = format!("echo returned | dd of={} conv=fsync,notrunc status=none", volume.target);
    guest.sh(&script).await;
    volume.unmount().await;
    assert_eq!(attached.detach().await.count("returned"), 1);
    assert_eq!(unrelated.detach().await.count("returned"), 0);
}
