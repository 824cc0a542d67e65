//! The node plugin and its mkfs are killed while mkfs writes, as when kubelet's container runtime kills the pod. Linux
//! before 5.15 has no diskseq to recognize the device afterwards.

use tonic::Code;

use crate::common::csi::{assert_fails, filesystem};
use crate::common::wait::until;
use crate::disk::{Attached, Fault, Kind, MIB};
use crate::hotplug::started;
use crate::machine::Guest;
use crate::node::{CALL_TIMEOUT, Node};

const SIZE: u64 = 320 * MIB;
const REPEATED: &str = "mkfs was interrupted on this disk, which was blank before";

/// Kills the node plugin and mkfs after mkfs has written a part, and flushes that to the disk.
async fn interrupt(guest: &Guest, node: &Node, attached: &Attached<'_>, fs_type: &str) {
    let volume = node.volume(&attached.disk, filesystem(fs_type));
    // Writers block when this many bytes are dirty. mkfs.btrfs writes 4 MiB of zeros and then the rest in one go.
    let (dirty, fault) = match fs_type {
        "btrfs" => (5 << 20, Fault::WriteHang),
        _ => (64 << 10, Fault::SlowWrites(1 << 20)),
    };
    let limit = format!(
        "echo {} > /proc/sys/vm/dirty_background_bytes; echo {dirty} > /proc/sys/vm/dirty_bytes",
        dirty / 2
    );
    guest.has_device("/dev/vda").await;
    guest.sh(&limit).await;
    attached.set_fault(fault).await;
    let kill = async {
        if fault != Fault::WriteHang {
            until("mkfs has written to the disk", CALL_TIMEOUT, async || {
                attached.disk.has_content().then_some(())
            })
            .await;
        }
        let kill = format!(
            "until pid=$(busybox pidof mkfs.{fs_type}) && grep -q ') D ' /proc/$pid/task/*/stat &&
                 grep -q '^write_bytes: [1-9]' /proc/$pid/io; do sleep 0.02; done
             kill -9 $(cat /run/node.pid) $pid"
        );
        guest.sh(&kill).await;
    };
    let (staged, ()) = tokio::join!(volume.stage(), kill);
    staged.unwrap_err();
    attached.set_fault(Fault::None).await;
    let flush = format!(
        "while busybox pidof mkfs.{fs_type} > /dev/null; do sleep 0.05; done; blockdev --flushbufs /dev/vda
         echo 10 > /proc/sys/vm/dirty_background_ratio; echo 20 > /proc/sys/vm/dirty_ratio"
    );
    guest.sh(&flush).await;
    assert!(attached.disk.has_content(), "nothing was written");
}

async fn is_completed(fs_type: &str) {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1interrupted000001", SIZE).await;
    interrupt(&guest, &node, &attached, fs_type).await;
    let node = guest.node().await;
    let volume = node.volume(&attached.disk, filesystem(fs_type));
    volume.mount().await;
    until("the log states why mkfs is repeated", CALL_TIMEOUT, async || {
        guest.log().contains(REPEATED).then_some(())
    })
    .await;
    let file = volume.file();
    guest.write(&file, "after the repeated mkfs").await;
    volume.unmount().await;
    guest.has_no_mounts().await;
    let disk = attached.detach().await;
    assert_ne!(disk.count("after the repeated mkfs"), 0);
    let _attached = guest.attach(&disk).await;
    volume.mount().await;
    assert_eq!(guest.read(&file).await, "after the repeated mkfs");
    volume.unmount().await;
}

crate::common::rows! { is_completed:
    an_interrupted_mkfs_of_ext4_is_completed_by_the_next_stage("ext4"),
    an_interrupted_mkfs_of_xfs_is_completed_by_the_next_stage("xfs"),
    an_interrupted_mkfs_of_btrfs_is_completed_by_the_next_stage("btrfs"),
}

/// Another node may have written to the disk in the meantime.
#[tokio::test]
async fn an_interrupted_mkfs_is_not_repeated_after_the_disk_was_detached() {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1interrupted000002", SIZE).await;
    interrupt(&guest, &node, &attached, "xfs").await;
    let disk = attached.detach().await;
    let before = std::fs::read(&disk.image).unwrap();
    let attached = guest.attach(&disk).await;
    let node = guest.node().await;
    let volume = node.volume(&disk, filesystem("xfs"));
    assert_fails(volume.stage().await, Code::FailedPrecondition, &["FORMAT_INTERRUPTED"]);
    let is_same = std::fs::read(&attached.disk.image).unwrap() == before;
    assert!(is_same, "the disk was changed");
}
