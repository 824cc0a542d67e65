//! A btrfs and its copy on one node, as a volume that is restored from a snapshot next to its source. Linux before 6.7
//! cannot mount both.

use std::fs;

use crate::common::csi::filesystem;
use crate::disk::{Kind, MIB};
use crate::hotplug::started;

#[tokio::test]
async fn a_copy_of_a_mounted_btrfs_is_rejected_and_mounted_after_its_source_is_unstaged() {
    let Some((guest, node)) = started().await else { return };
    let source = guest.attach_new(Kind::Virtio, "btrfssource", 256 * MIB).await;
    let volume = node.volume(&source.disk, filesystem("btrfs"));
    volume.mount().await;
    guest.write(&volume.file(), "before the snapshot").await;
    volume.unmount().await;
    let snapshot = guest.disk(Kind::Virtio, "btrfscopy", 256 * MIB);
    fs::copy(&source.disk.image, &snapshot.image).unwrap();
    // The source is the newer one of the two.
    volume.mount().await;
    guest.write(&volume.file(), "after the snapshot").await;

    let copy = guest.attach(&snapshot).await;
    let restored = node.volume(&copy.disk, filesystem("btrfs"));
    let can_mount_both = guest.try_sh("[ -e /sys/fs/btrfs/features/temp_fsid ]").await;
    if can_mount_both.code == 0 {
        restored.mount().await;
        assert_eq!(guest.read(&volume.file()).await, "after the snapshot");
        volume.unmount().await;
    } else {
        let error = restored.stage().await.unwrap_err();
        for part in ["DUPLICATE_FILESYSTEM", "mounted from vd"] {
            assert!(error.message().contains(part), "{error}");
        }
        volume.unmount().await;
        // The kernel still has the source registered, and prefers it because it is newer.
        restored.mount().await;
    }
    assert_eq!(guest.read(&restored.file()).await, "before the snapshot");
    restored.unmount().await;
    guest.has_no_mounts().await;
}
