//! Resolution of a disk to its device.

use std::time::Duration;

use tonic::Code;

use crate::common::csi::{assert_fails, filesystem};
use crate::common::wait::until;
use crate::disk::{Kind, MIB};
use crate::hotplug::started;
use crate::node::CALL_TIMEOUT;

const SIZE: u64 = 64 * MIB;

/// Timeout of calls that are expected to time out.
const SHORT: Duration = Duration::from_secs(2);

#[tokio::test]
async fn staging_waits_for_a_disk_that_is_attached_late() {
    let Some((guest, node)) = started().await else { return };
    for (kind, serial) in [
        (Kind::Virtio, "bp1late000000000000v"),
        (Kind::Nvme, "bp1late000000000000n"),
    ] {
        let disk = guest.disk(kind, serial, SIZE);
        let volume = node.volume(&disk, filesystem("ext4"));
        volume.within(SHORT).stage().await.unwrap_err();
        let message = format!("no device with serial {serial} appeared by the deadline");
        until("the log names the missing serial", CALL_TIMEOUT, async || {
            guest.log().contains(&message).then_some(())
        })
        .await;
        let (staged, attached) = tokio::join!(volume.stage(), guest.attach(&disk));
        staged.unwrap();
        volume.publish().await.unwrap();
        guest.write(&volume.file(), &format!("late {serial}")).await;
        volume.unmount().await;
        assert_ne!(attached.detach().await.count(&format!("late {serial}")), 0);
    }
}

#[tokio::test]
async fn a_reused_device_name_does_not_resolve_to_the_wrong_disk() {
    let Some((guest, node)) = started().await else { return };
    let mut names = Vec::new();
    let name = "ls /sys/block | grep '^vd' | tr '\\n' ' '";
    for round in 0..6 {
        let serial = format!("bp1again0000000000{round:02}");
        let attached = guest.attach_new(Kind::Virtio, &serial, SIZE).await;
        let volume = node.volume(&attached.disk, filesystem("ext4"));
        volume.mount().await;
        names.push(guest.sh(name).await);
        let text = format!("content of {serial}");
        let file = volume.file();
        let found = guest.try_sh(&format!("test -e {file}")).await;
        assert_ne!(found.code, 0, "the file of another disk");
        guest.write(&file, &text).await;
        // Every other disk is detached while it is mounted.
        let disk = if round % 2 == 0 {
            volume.unmount().await;
            attached.detach().await
        } else {
            let disk = attached.detach().await;
            volume.unmount().await;
            disk
        };
        assert_ne!(disk.count(&text), 0, "the content is on another disk");
    }
    names.dedup();
    assert!(names.len() < 6, "no name was reused: {names:?}");
}

#[tokio::test]
async fn disks_with_the_same_serial_are_rejected_until_one_remains() {
    let Some((guest, node)) = started().await else { return };
    let first = guest.attach_new(Kind::Virtio, "bp1double00000000001", SIZE).await;
    let second = guest.attach_new(Kind::Nvme, "bp1double00000000001", SIZE).await;
    guest
        .sh("until [[ $(grep -ls bp1double /sys/block/*/{serial,device/serial} | wc -l) == 2 ]]; do sleep 0.1; done")
        .await;
    let volume = node.volume(&first.disk, filesystem("ext4"));
    let names = ["/dev/vda", "/dev/nvme0n1"];
    assert_fails(volume.stage().await, Code::FailedPrecondition, &names);
    let second = second.detach().await;
    assert!(!second.has_content(), "the disk was written to");
    volume.mount().await;
    guest.write(&volume.file(), "the remaining disk").await;
    volume.unmount().await;
    assert_ne!(first.detach().await.count("the remaining disk"), 0);
}

#[tokio::test]
async fn a_disk_with_a_truncated_or_missing_serial_is_rejected_and_not_written_to() {
    let Some((guest, node)) = started().await else { return };
    for (serial, part) in [
        ("bp1longer0000000000001x", "with serial bp1longer00000000000"),
        ("", "create a new disk from the snapshot"),
    ] {
        let disk = guest.disk(Kind::Virtio, serial, SIZE);
        let volume = node.volume(&disk, filesystem("ext4"));
        let attached = guest.attach(&disk).await;
        guest
            .sh("until [[ -e /sys/block/vda/serial ]]; do sleep 0.1; done; udevadm settle")
            .await;
        // On a busy machine, the guest can respond after the caller's deadline.
        let mut error = volume.within(SHORT).stage().await.unwrap_err();
        for _ in 0..10 {
            if error.code() == Code::DeadlineExceeded {
                break;
            }
            error = volume.within(5 * SHORT).stage().await.unwrap_err();
        }
        assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
        assert!(error.message().contains(part), "{error}");
        assert!(!attached.detach().await.has_content(), "the disk was written to");
    }
}
