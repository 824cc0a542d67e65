//! Which device a disk is.

use std::time::Duration;

use tonic::Code;

use crate::common::wait::until;
use crate::disk::{Kind, MIB};
use crate::machine::Guest;
use crate::node::{AMPLE, filesystem};

const SIZE: u64 = 64 * MIB;

/// Time for what is to be waited for in vain.
const BRIEF: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_disk_that_comes_late_is_waited_for() {
    let Some(guest) = Guest::fresh("a_disk_that_comes_late_is_waited_for").await else {
        return;
    };
    let node = guest.node().await;
    for (kind, serial) in [
        (Kind::Virtio, "bp1late000000000000v"),
        (Kind::Nvme, "bp1late000000000000n"),
    ] {
        let disk = guest.disk(kind, serial, SIZE);
        let volume = node.volume(&disk, filesystem("ext4"));
        volume.stage_within(BRIEF).await.unwrap_err();
        let told = format!("no device with serial {serial} appeared by the deadline");
        until("it is told what is missing", AMPLE, async || {
            guest.log().contains(&told).then_some(())
        })
        .await;
        let (staged, attached) = tokio::join!(volume.stage(), guest.attach(&disk));
        staged.unwrap();
        volume.publish().await.unwrap();
        guest
            .write(&format!("{}/file", volume.target), &format!("late {serial}"))
            .await;
        volume.leave().await;
        assert_ne!(attached.detach().await.count(&format!("late {serial}")), 0);
    }
}

#[tokio::test]
async fn a_name_that_is_used_again_leads_to_no_other_disk() {
    let Some(guest) = Guest::fresh("a_name_that_is_used_again_leads_to_no_other_disk").await else {
        return;
    };
    let node = guest.node().await;
    let mut names = Vec::new();
    let name = "ls /sys/block | grep '^vd' | tr '\\n' ' '";
    for round in 0..6 {
        let serial = format!("bp1again0000000000{round:02}");
        let attached = guest.attach_new(Kind::Virtio, &serial, SIZE).await;
        let volume = node.volume(&attached.disk, filesystem("ext4"));
        volume.come().await;
        names.push(guest.sh(name).await);
        let text = format!("content of {serial}");
        let file = format!("{}/file", volume.target);
        assert_ne!(
            guest.try_sh(&format!("test -e {file}")).await.code,
            0,
            "another disk's file"
        );
        guest.write(&file, &text).await;
        // Every other disk goes as the cloud takes it by force.
        let disk = if round % 2 == 0 {
            volume.leave().await;
            attached.detach().await
        } else {
            let disk = attached.detach().await;
            volume.leave().await;
            disk
        };
        assert_ne!(disk.count(&text), 0, "it is on another disk");
    }
    names.dedup();
    assert!(names.len() < 6, "no name was used again: {names:?}");
}

#[tokio::test]
async fn disks_with_one_serial_are_refused_until_one_is_left() {
    let test = "disks_with_one_serial_are_refused_until_one_is_left";
    let Some(guest) = Guest::fresh(test).await else {
        return;
    };
    let node = guest.node().await;
    let first = guest.attach_new(Kind::Virtio, "bp1double00000000001", SIZE).await;
    let second = guest.attach_new(Kind::Nvme, "bp1double00000000001", SIZE).await;
    guest
        .sh("until [[ $(grep -ls bp1double /sys/block/*/{serial,device/serial} | wc -l) == 2 ]]; do sleep 0.1; done")
        .await;
    let volume = node.volume(&first.disk, filesystem("ext4"));
    let error = volume.stage().await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    for name in ["/dev/vda", "/dev/nvme0n1"] {
        assert!(error.message().contains(name), "{name}: {error}");
    }
    let second = second.detach().await;
    let bytes = std::fs::read(&second.image).unwrap();
    assert!(bytes == vec![0; bytes.len()], "it was written to");
    volume.come().await;
    guest
        .write(&format!("{}/file", volume.target), "the one that is left")
        .await;
    volume.leave().await;
    assert_ne!(first.detach().await.count("the one that is left"), 0);
}

#[tokio::test]
async fn a_disk_whose_serial_is_cut_or_missing_is_refused_and_not_written_to() {
    let test = "a_disk_whose_serial_is_cut_or_missing_is_refused_and_not_written_to";
    let Some(guest) = Guest::fresh(test).await else {
        return;
    };
    let node = guest.node().await;
    for (serial, word) in [
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
        let mut error = volume.stage_within(BRIEF).await.unwrap_err();
        for _ in 0..10 {
            if error.code() == Code::DeadlineExceeded {
                break;
            }
            error = volume.stage_within(5 * BRIEF).await.unwrap_err();
        }
        assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
        assert!(error.message().contains(word), "{error}");
        let disk = attached.detach().await;
        let bytes = std::fs::read(&disk.image).unwrap();
        assert!(bytes == vec![0; bytes.len()], "it was written to");
    }
}
