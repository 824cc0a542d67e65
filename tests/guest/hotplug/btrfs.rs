//! A btrfs and its copy on one node, as a volume that is restored from a snapshot next to its source. Linux before 6.7
//! cannot mount both.

use std::fs;

use crate::disk::{Kind, MIB};
use crate::hotplug::started;
use crate::node::filesystem;

#[tokio::test]
async fn a_copy_of_a_mounted_btrfs_is_rejected_and_mounted_after_its_source_is_unstaged() {
    let Some((guest, node)) = started().await else { return };
    let source = guest.attach_new(Kind::Virtio, "btrfssource", 256 * MIB).await;
    let volume = node.volume(&source.disk, filesystem("btrfs"));
    volume.mount().await;
    guest
        .write(&format!("{}/name", volume.target), "before the snapshot")
        .await;
    volume.unmount().await;
    let snapshot = guest.disk(Kind::Virtio, "btrfscopy", 256 * MIB);
    fs::copy(&source.disk.image, &snapshot.image).unwrap();
    // The source is the newer one of the two.
    volume.mount().await;
    guest
        .write(&format!("{}/name", volume.target), "after the snapshot")
        .await;

    let copy = guest.attach(&snapshot).await;
    let restored = node.volume(&copy.disk, filesystem("btrfs"));
    let can_mount_both = guest.try_sh("[ -e /sys/fs/btrfs/features/temp_fsid ]").await;
    if can_mount_both.code == 0 {
        restored.mount().await;
        let name = guest.read(&format!("{}/name", volume.target)).await;
        assert_eq!(name, "after the snapshot");
        volume.unmount().await;
    } else {
        let error = restored.stage().await.unwrap_err();
        assert!(error.message().contains("DUPLICATE_FILESYSTEM"), "{error}");
        assert!(error.message().contains("mounted from vd"), "{error}");
        volume.unmount().await;
        // The kernel still has the source registered, and prefers it because it is newer.
        restored.mount().await;
    }
    let name = guest.read(&format!("{}/name", restored.target)).await;
    assert_eq!(name, "before the snapshot");
    restored.unmount().await;
    guest.has_no_mounts().await;
}
