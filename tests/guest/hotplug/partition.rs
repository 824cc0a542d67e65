//! An imported disk whose filesystem is in its only partition.

use tonic::Code;

use crate::common::csi::{assert_fails, filesystem};
use crate::disk::{Kind, MIB};
use crate::hotplug::started;

async fn is_used_on_request(fs_type: &str) {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1partition00000001", 320 * MIB).await;
    // The tools may be newer than the kernel.
    let mkfs = match fs_type {
        "xfs" => "mkfs.xfs -q -i nrext64=0",
        _ => "mkfs.ext4 -q -O ^orphan_file,^metadata_csum_seed",
    };
    guest.has_device("/dev/vda").await;
    let make = format!(
        "printf 'label: gpt\\n,\\n' | sfdisk --quiet /dev/vda; udevadm settle
         {mkfs} /dev/vda1; mkdir /mnt; mount /dev/vda1 /mnt
         echo 'from elsewhere' > /mnt/file; umount /mnt; blockdev --flushbufs /dev/vda"
    );
    guest.sh(&make).await;
    let mut volume = node.volume(&attached.disk, filesystem(fs_type));
    let before = std::fs::read(&attached.disk.image).unwrap();
    assert_fails(volume.stage().await, Code::FailedPrecondition, &["FOREIGN_DATA"]);
    let is_same = std::fs::read(&attached.disk.image).unwrap() == before;
    assert!(is_same, "the disk was changed");

    volume.context.insert("partition".to_owned(), "1".to_owned());
    volume.mount().await;
    let file = volume.file();
    assert_eq!(guest.read(&file).await, "from elsewhere");
    guest.write(&format!("{file}.new"), "from the pod").await;
    // Writes during the expansion.
    let load = format!(
        "(until [[ -e /run/stop ]]; do head -c 100000 /dev/urandom > {0}; sync {0}; done; touch /run/end) > /dev/null 2>&1 &",
        format_args!("{}/load", volume.target)
    );
    guest.sh(&load).await;
    for larger in [512 * MIB, 1024 * MIB] {
        let (expanded, ()) = tokio::join!(volume.expand(larger), attached.grow(larger));
        let expanded = expanded.unwrap();
        assert!(expanded > larger - 4 * MIB, "{expanded}");
        let total = volume.total_bytes().await.unwrap();
        assert!(total > larger * 8 / 10, "{total} of {larger}");
    }
    guest
        .sh("touch /run/stop; until [[ -e /run/end ]]; do sleep 0.05; done")
        .await;
    assert_eq!(volume.health().await.unwrap(), []);
    volume.unmount().await;
    guest.has_no_mounts().await;
    // The partition table is valid, also after the disk is attached again.
    let disk = attached.detach().await;
    let attached = guest.attach(&disk).await;
    volume.mount().await;
    guest.sh("sfdisk --verify /dev/vda").await;
    assert_eq!(guest.read(&file).await, "from elsewhere");
    assert_eq!(guest.read(&format!("{file}.new")).await, "from the pod");
    volume.unmount().await;
    guest.has_no_mounts().await;
    attached.detach().await;
}

crate::common::rows! { is_used_on_request:
    a_partition_with_ext4_is_staged_and_expanded_only_on_request("ext4"),
    a_partition_with_xfs_is_staged_and_expanded_only_on_request("xfs"),
}
