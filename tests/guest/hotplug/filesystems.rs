//! Filesystems that this guest's tools create, on this guest's kernel.

use tonic::Code;

use crate::common::csi::{assert_fails, filesystem};
use crate::disk::{Kind, MIB};
use crate::hotplug::started;

const SIZE: u64 = 320 * MIB;

/// A check that fails if the filesystem has errors.
fn check(fs_type: &str) -> String {
    let program = match fs_type {
        "ext4" => "e2fsck -fn",
        "xfs" => "xfs_repair -n",
        _ => "btrfs check --readonly",
    };
    format!("{program} /dev/vda > /dev/null")
}

/// A volume that the driver formats can be mounted, expanded, and staged again, and is clean afterwards.
async fn is_formatted_and_expanded(fs_type: &str) {
    let Some((guest, node)) = started().await else { return };
    eprintln!("{}", guest.sh("uname -r").await);
    let attached = guest.attach_new(Kind::Virtio, "bp1filesystem0000001", SIZE).await;
    let volume = node.volume(&attached.disk, filesystem(fs_type));
    volume.mount().await;
    let file = volume.file();
    guest.write(&file, "before the expansion").await;
    let (expanded, ()) = tokio::join!(volume.expand(2 * SIZE), attached.grow(2 * SIZE));
    assert_eq!(expanded.unwrap(), 2 * SIZE);
    let total = volume.total_bytes().await.unwrap();
    assert!(total > SIZE * 3 / 2, "{total}");
    assert_eq!(volume.health().await.unwrap(), []);
    volume.unmount().await;
    guest.sh(&check(fs_type)).await;
    volume.mount().await;
    assert_eq!(guest.read(&file).await, "before the expansion");
    volume.unmount().await;
    guest.has_no_mounts().await;
    attached.detach().await;
}

crate::common::rows! { is_formatted_and_expanded:
    ext4_is_formatted_and_expanded("ext4"),
    xfs_is_formatted_and_expanded("xfs"),
    btrfs_is_formatted_and_expanded("btrfs"),
}

/// A filesystem with this feature, not created by the driver, is staged if the kernel supports it. Otherwise the error
/// refers to the kernel log, and the disk is unchanged.
async fn is_staged_or_rejected(fs_type: &str, feature: &str) {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1feature0000000001", SIZE).await;
    guest.has_device("/dev/vda").await;
    let made = guest.try_sh(&format!("mkfs.{fs_type} -q {feature} /dev/vda")).await;
    if made.code != 0 {
        eprintln!("these tools do not support {feature}: {}", made.text);
        return;
    }
    let can_mount = "mount /dev/vda /mnt && echo 'from elsewhere' > /mnt/file && umount /mnt";
    let is_supported = guest.try_sh(&format!("mkdir /mnt; {can_mount}")).await;
    let volume = node.volume(&attached.disk, filesystem(fs_type));
    if is_supported.code == 0 {
        volume.mount().await;
        let file = volume.file();
        assert_eq!(guest.read(&file).await, "from elsewhere");
        volume.unmount().await;
        attached.detach().await;
        return;
    }
    let version = guest.sh("uname -r").await;
    eprintln!("Linux {version} cannot mount {fs_type} with {feature}");
    let before = std::fs::read(&attached.disk.image).unwrap();
    let rejected = volume.stage().await;
    assert_fails(rejected, Code::Internal, &["its log has the reason"]);
    guest.has_no_mounts().await;
    let disk = attached.detach().await;
    let is_same = std::fs::read(&disk.image).unwrap() == before;
    assert!(is_same, "the disk was changed");
}

crate::common::rows! { is_staged_or_rejected:
    ext4_with_a_feature_of_linux_5_15_is_staged_or_rejected("ext4", "-O orphan_file,metadata_csum_seed"),
    xfs_with_a_feature_of_linux_5_19_is_staged_or_rejected("xfs", "-i nrext64=1"),
    btrfs_with_a_feature_of_linux_6_1_is_staged_or_rejected("btrfs", "-O block-group-tree"),
}
