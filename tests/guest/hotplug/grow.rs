//! Expansion of volumes in use.

use tonic::Status;

use crate::common::csi::filesystem;
use crate::common::request::block;
use crate::common::volume::NodeVolume;
use crate::disk::{Attached, Kind, MIB};
use crate::hotplug::started;
use crate::machine::Guest;

/// Number of files that the load overwrites in turn.
pub(super) const FILES: u32 = 24;

/// Writes until /run/stop exists. The content of each file depends on the number of the write, which is stored in /run.
pub(super) fn load(target: &str) -> String {
    format!(
        "rm -f /run/stop /run/load.*; mkdir -p {target}/load
         (i=0; while [[ ! -e /run/stop ]]; do
             n=$((i % {FILES})); i=$((i + 1))
             {{ yes \"writing $i\" 2> /dev/null || true; }} | head -c 300001 > {target}/load/$n || exit 1
             echo $i > /run/load.$n
         done; echo $i > /run/load.end) > /run/load.log 2>&1 &"
    )
}

/// Compares the files with what the load has written.
pub(super) fn compare(target: &str) -> String {
    format!(
        "for f in {target}/load/*; do
             cmp $f <(yes \"writing $(cat /run/load.${{f##*/}})\" 2> /dev/null | head -c 300001)
         done; ls {target}/load | wc -l"
    )
}

/// Expands the volume twice during writes: the filesystem grows, and its content is unchanged.
async fn expands_under_load(fs_type: &str, sizes: [u64; 3]) {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1growing0000000001", sizes[0]).await;
    let volume = node.volume(&attached.disk, filesystem(fs_type));
    volume.mount().await;
    let target = &volume.target;
    guest.sh(&load(target)).await;
    for size in &sizes[1..] {
        assert_expands(&guest, &volume, *size, grow(&volume, &attached, *size)).await;
    }
    end_load(&guest, target).await;
    volume.unmount().await;
    let disk = attached.detach().await;
    let attached = guest.attach(&disk).await;
    volume.mount().await;
    assert_eq!(guest.sh(&compare(target)).await, FILES.to_string());
    volume.unmount().await;
    attached.detach().await;
}

/// The cloud expands the disk; the call of kubelet may arrive before the guest observes the new size.
async fn grow(volume: &NodeVolume, attached: &Attached<'_>, size: u64) -> Result<u64, Status> {
    let (grown, ()) = tokio::join!(volume.expand(size), attached.grow(size));
    grown
}

/// Expands the volume during writes: the filesystem grows, and the writes continue.
pub(super) async fn assert_expands(
    guest: &Guest,
    volume: &NodeVolume,
    size: u64,
    grow: impl Future<Output = Result<u64, Status>>,
) {
    let before = volume.total_bytes().await.unwrap();
    let written: u32 = last_write(guest).await;
    assert_eq!(grow.await.unwrap(), size);
    let after = volume.total_bytes().await.unwrap();
    assert!(
        after > before && after > size * 7 / 10,
        "{before} became {after}, not {size}"
    );
    let enough = format!(
        "until [[ $(cat /run/load.[0-9]* | sort -n | tail -n 1) -gt {} ]]; do sleep 0.1; done",
        written + FILES
    );
    guest.sh(&enough).await;
}

/// Stops the load, and compares its files.
pub(super) async fn end_load(guest: &Guest, target: &str) {
    guest
        .sh("touch /run/stop; until [[ -e /run/load.end ]]; do sleep 0.1; done; cat /run/load.log")
        .await;
    assert_eq!(guest.sh(&compare(target)).await, FILES.to_string());
}

/// The number of the last write of the load.
async fn last_write(guest: &Guest) -> u32 {
    let script =
        "until ls /run/load.[0-9]* > /dev/null 2>&1; do sleep 0.1; done; cat /run/load.[0-9]* | sort -n | tail -n 1";
    guest.sh(script).await.parse().unwrap()
}

crate::common::rows! { expands_under_load:
    ext4_expands_under_load("ext4", [64 * MIB, 128 * MIB, 512 * MIB]),
    xfs_expands_under_load("xfs", [320 * MIB, 512 * MIB, 1024 * MIB]),
    btrfs_expands_under_load("btrfs", [256 * MIB, 384 * MIB, 768 * MIB]),
}

/// QEMU's NVMe device does not support expansion while it is attached.
#[tokio::test]
async fn an_nvme_disk_that_grew_while_detached_is_expanded_by_staging() {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Nvme, "bp1growing0000000003", 64 * MIB).await;
    let volume = node.volume(&attached.disk, filesystem("ext4"));
    volume.mount().await;
    let file = volume.file();
    guest.write(&file, "before the expansion").await;
    volume.unmount().await;
    let disk = attached.detach().await;
    disk.grow(128 * MIB);
    let attached = guest.attach(&disk).await;
    volume.mount().await;
    assert_eq!(guest.read(&file).await, "before the expansion");
    let total = volume.total_bytes().await.unwrap();
    assert!(total > 96 * MIB, "{total}");
    volume.unmount().await;
    attached.detach().await;
}

#[tokio::test]
async fn a_raw_block_volume_expands_while_it_is_open() {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1growing0000000002", 64 * MIB).await;
    let volume = node.volume(&attached.disk, block());
    volume.mount().await;
    let open = format!(
        "sleep 600 > /dev/null 2>&1 <> {} & echo $! > /run/holder",
        volume.target
    );
    guest.sh(&open).await;
    let grown = grow(&volume, &attached, 96 * MIB).await;
    assert_eq!(grown.unwrap(), 96 * MIB);
    assert_eq!(volume.total_bytes().await.unwrap(), 96 * MIB);
    let write = "bs=1M seek=95 conv=fsync,notrunc status=none";
    guest
        .sh(&format!("echo beyond | dd of={} {write}", volume.target))
        .await;
    // The process holds the device until it has ended.
    let end = "pid=$(cat /run/holder); kill $pid
         while [[ -e /proc/$pid/fd/0 ]]; do sleep 0.02; done";
    guest.sh(end).await;
    volume.unmount().await;
    assert_eq!(attached.detach().await.count("beyond"), 1);
}
