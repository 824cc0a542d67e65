//! Growing while it is used.

use std::future::Future;

use tonic::Status;

use crate::disk::{Attached, Kind, MIB};
use crate::machine::Guest;
use crate::node::{Volume, block, filesystem};

/// Files that the load writes, over and over.
pub(super) const FILES: u32 = 24;

/// Writes until /run/stop is there. Each file's content follows from the number of its writing, which
/// is kept elsewhere.
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

/// Compares all that the load has written.
pub(super) fn compare(target: &str) -> String {
    format!(
        "for f in {target}/load/*; do
             cmp $f <(yes \"writing $(cat /run/load.${{f##*/}})\" 2> /dev/null | head -c 300001)
         done; ls {target}/load | wc -l"
    )
}

/// Grows it twice while it is written to: the filesystem has the room, and each byte is what it was.
async fn grows_under_load(test: &str, fs_type: &str, sizes: [u64; 3]) {
    let Some(guest) = Guest::fresh(test).await else {
        return;
    };
    let node = guest.node().await;
    let attached = guest.attach_new(Kind::Virtio, "bp1growing0000000001", sizes[0]).await;
    let volume = node.volume(&attached.disk, filesystem(fs_type));
    volume.come().await;
    let target = &volume.target;
    guest.sh(&load(target)).await;
    for size in &sizes[1..] {
        assert_grows(&guest, &volume, *size, grow(&volume, &attached, *size)).await;
    }
    end_load(&guest, target).await;
    volume.leave().await;
    let disk = attached.detach().await;
    let attached = guest.attach(&disk).await;
    volume.come().await;
    assert_eq!(guest.sh(&compare(target)).await, FILES.to_string());
    volume.leave().await;
    attached.detach().await;
}

/// The cloud makes the disk larger; kubelet's call may come before the guest knows.
async fn grow(volume: &Volume, attached: &Attached<'_>, size: u64) -> Result<i64, Status> {
    let (grown, ()) = tokio::join!(volume.expand(size), attached.grow(size));
    grown
}

/// Grows the volume to this size while it is written to: the filesystem grows, and the writes continue in it.
pub(super) async fn assert_grows(
    guest: &Guest,
    volume: &Volume,
    size: u64,
    grow: impl Future<Output = Result<i64, Status>>,
) {
    let before = total(volume).await;
    let written: u32 = writings(guest).await;
    assert_eq!(grow.await.unwrap(), i64::try_from(size).unwrap());
    let after = total(volume).await;
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

/// Ends the writes, and compares what was written.
pub(super) async fn end_load(guest: &Guest, target: &str) {
    guest
        .sh("touch /run/stop; until [[ -e /run/load.end ]]; do sleep 0.1; done; cat /run/load.log")
        .await;
    assert_eq!(guest.sh(&compare(target)).await, FILES.to_string());
}

async fn total(volume: &Volume) -> u64 {
    u64::try_from(volume.stats().await.unwrap().usage[0].total).unwrap()
}

/// How often the load has written.
async fn writings(guest: &Guest) -> u32 {
    let script =
        "until ls /run/load.[0-9]* > /dev/null 2>&1; do sleep 0.1; done; cat /run/load.[0-9]* | sort -n | tail -n 1";
    guest.sh(script).await.parse().unwrap()
}

#[tokio::test]
async fn ext4_grows_under_load() {
    let sizes = [64 * MIB, 128 * MIB, 512 * MIB];
    grows_under_load("ext4_grows_under_load", "ext4", sizes).await;
}

/// QEMU tells the guest of no growth on NVMe.
#[tokio::test]
async fn an_nvme_disk_that_grew_while_it_was_away_is_grown_by_staging() {
    let test = "an_nvme_disk_that_grew_while_it_was_away_is_grown_by_staging";
    let Some(guest) = Guest::fresh(test).await else {
        return;
    };
    let node = guest.node().await;
    let attached = guest.attach_new(Kind::Nvme, "bp1growing0000000003", 64 * MIB).await;
    let volume = node.volume(&attached.disk, filesystem("ext4"));
    volume.come().await;
    let file = format!("{}/file", volume.target);
    guest.write(&file, "before it grew").await;
    volume.leave().await;
    let disk = attached.detach().await;
    disk.grow(128 * MIB);
    let attached = guest.attach(&disk).await;
    volume.come().await;
    assert_eq!(guest.read(&file).await, "before it grew");
    let total = total(&volume).await;
    assert!(total > 96 * MIB, "{total}");
    volume.leave().await;
    attached.detach().await;
}

#[tokio::test]
async fn xfs_grows_under_load() {
    let sizes = [320 * MIB, 512 * MIB, 1024 * MIB];
    grows_under_load("xfs_grows_under_load", "xfs", sizes).await;
}

#[tokio::test]
async fn btrfs_grows_under_load() {
    let sizes = [256 * MIB, 384 * MIB, 768 * MIB];
    grows_under_load("btrfs_grows_under_load", "btrfs", sizes).await;
}

#[tokio::test]
async fn a_raw_block_volume_grows_while_it_is_open() {
    let Some(guest) = Guest::fresh("a_raw_block_volume_grows_while_it_is_open").await else {
        return;
    };
    let node = guest.node().await;
    let attached = guest.attach_new(Kind::Virtio, "bp1growing0000000002", 64 * MIB).await;
    let volume = node.volume(&attached.disk, block());
    volume.come().await;
    guest
        .sh(&format!(
            "sleep 600 > /dev/null 2>&1 <> {} & echo $! > /run/holder",
            volume.target
        ))
        .await;
    let grown = grow(&volume, &attached, 96 * MIB).await;
    assert_eq!(grown.unwrap(), i64::try_from(96 * MIB).unwrap());
    assert_eq!(total(&volume).await, 96 * MIB);
    let script = format!(
        "echo beyond | dd of={} bs=1M seek=95 conv=fsync,notrunc status=none",
        volume.target
    );
    guest.sh(&script).await;
    // Told to end is not yet ended, and until then it holds the device.
    let end = "pid=$(cat /run/holder); kill $pid
         while [[ -e /proc/$pid/fd/0 ]]; do sleep 0.02; done";
    guest.sh(end).await;
    volume.leave().await;
    assert_eq!(attached.detach().await.count("beyond"), 1);
}
