//! A virtio disk that does not report its serial in time, after a restart of the node plugin.

use tonic::{Code, Status};

use crate::common::csi::{assert_fails, filesystem};
use crate::disk::{Attached, Fault, Kind, MIB, SHORT_QUEUE};
use crate::hotplug::started;
use crate::machine::Guest;

const SIZE: u64 = 64 * MIB;

/// Fills the queue of the disk, so that it does not report its serial either.
async fn block_serial(guest: &Guest, attached: &Attached<'_>) {
    attached.set_fault(Fault::Hang).await;
    // Twice as many reads as the queue holds; the others block.
    let reads = format!(
        "for block in $(seq {}); do
             dd if=/dev/vda of=/dev/null bs=4096 skip=$((block * 64)) count=1 iflag=direct > /dev/null 2>&1 &
         done
         until [[ $(grep -ls '(dd) D' /proc/[0-9]*/stat | wc -l) -gt {SHORT_QUEUE} ]]; do sleep 0.05; done",
        2 * SHORT_QUEUE
    );
    guest.sh(&reads).await;
}

async fn release_serial(guest: &Guest, attached: &Attached<'_>) {
    attached.set_fault(Fault::None).await;
    guest
        .sh("until [[ $(cat /sys/block/vda/serial) == bp1lateserial0000001 ]]; do sleep 0.05; done")
        .await;
}

fn is_unidentified(result: Result<(), Status>) {
    assert_fails(result, Code::Unavailable, &["DEVICE_UNIDENTIFIED", "/dev/vda"]);
}

/// The controller detaches the disk after an unstage that succeeds, so an unknown serial must not be treated as
/// absence.
#[tokio::test]
async fn a_disk_with_a_late_serial_is_not_treated_as_absent() {
    let Some((guest, node)) = started().await else { return };
    let attached = guest
        .attach_new(Kind::VirtioShortQueue, "bp1lateserial0000001", SIZE)
        .await;
    let volume = node.volume(&attached.disk, filesystem("ext4"));
    volume.mount().await;
    let file = volume.file();
    guest.write(&file, "on the disk").await;
    // Without its record, only the serial identifies the disk.
    let remove_record = "kill -9 $(cat /run/node.pid); rm -r /var/lib/diskplugin";
    guest.sh(remove_record).await;
    block_serial(&guest, &attached).await;
    let node = guest.node().await;
    let volume = node.volume(&attached.disk, filesystem("ext4"));
    is_unidentified(volume.unpublish().await);
    is_unidentified(volume.unstage().await);
    for path in [&volume.staging, &volume.target] {
        guest.sh(&format!("grep {path} /proc/self/mountinfo")).await;
    }
    release_serial(&guest, &attached).await;
    assert_eq!(guest.read(&file).await, "on the disk");
    volume.unmount().await;
    guest.has_no_mounts().await;

    // The disk is mounted only outside the staging path, and must not be detached either.
    guest
        .sh("mkdir /mnt; mount /dev/vda /mnt; kill -9 $(cat /run/node.pid)")
        .await;
    block_serial(&guest, &attached).await;
    let node = guest.node().await;
    let volume = node.volume(&attached.disk, filesystem("ext4"));
    is_unidentified(volume.unstage().await);
    release_serial(&guest, &attached).await;
    assert_fails(volume.unstage().await, Code::FailedPrecondition, &[]);
    guest.sh("umount /mnt").await;
    volume.unstage().await.unwrap();
    attached.detach().await;
}
