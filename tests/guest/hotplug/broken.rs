//! Disks that fail, and disks that answer no more.

use std::time::Duration;

use crate::disk::{Kind, MIB, Mood};
use crate::machine::Guest;
use crate::node::filesystem;

/// For what must not wait for a disk that hangs, on a busy machine.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_disk_that_fails_while_it_is_staged_is_not_formatted_and_staged_later() {
    let test = "a_disk_that_fails_while_it_is_staged_is_not_formatted_and_staged_later";
    let Some(guest) = Guest::fresh(test).await else {
        return;
    };
    let node = guest.node().await;
    let attached = guest.attach_new(Kind::Virtio, "bp1failing0000000001", 64 * MIB).await;
    guest.sh("udevadm settle").await;
    let volume = node.volume(&attached.disk, filesystem("ext4"));
    attached.be(Mood::Fails).await;
    let error = volume.stage().await.unwrap_err();
    eprintln!("staging a disk that fails: {error}");
    guest.has_no_mounts().await;
    let bytes = std::fs::read(&attached.disk.image).unwrap();
    assert!(bytes == vec![0; bytes.len()], "it was written to");
    attached.be(Mood::Well).await;
    volume.come().await;
    volume.leave().await;
}

/// Fails while it is mounted: the condition tells it, and once the disk is well all goes on.
async fn fails_while_mounted(test: &str, fs_type: &str) {
    let Some(guest) = Guest::fresh(test).await else {
        return;
    };
    let node = guest.node().await;
    let attached = guest.attach_new(Kind::Virtio, "bp1failing0000000002", 320 * MIB).await;
    let mut volume = node.volume(&attached.disk, filesystem(fs_type));
    volume.come().await;
    let file = format!("{}/file", volume.target);
    guest.write(&file, "before the failure").await;
    attached.be(Mood::Fails).await;
    // Only the process that issued a failed write gets its error. The filesystem shuts down when it cannot write its
    // journal. Each round creates new files: ext4 discards a new timestamp of an existing file without an error.
    let wait_for_shutdown = format!(
        "until i=$((i + 1)); ! {{ touch {0}/a$i && sync {0}/a$i; }} && ! touch {0}/b$i; do sleep 0.2; done 2> /dev/null",
        volume.target
    );
    guest.sh(&wait_for_shutdown).await;
    if let Err(error) = volume.stats().await {
        eprintln!("statistics of a disk that fails: {error}");
    }
    // A filesystem that has shut down may reject every request.
    match volume.health().await {
        Ok(health) => assert!(!health.is_empty()),
        Err(error) => eprintln!("health of a disk that fails: {error}"),
    }
    attached.be(Mood::Well).await;
    volume.unpublish().await.unwrap();
    // What could not be written is lost, and the kernel says so once; so does unstaging.
    if let Err(error) = volume.unstage().await {
        assert!(error.message().contains("cannot flush"), "{error}");
        volume.unstage().await.unwrap();
    }
    guest.has_no_mounts().await;
    if fs_type == "ext4" {
        // Only e2fsck repairs a recorded error; that is the default. Linux 5.10 cannot write the record to this disk.
        let recorded = guest
            .try_sh("dumpe2fs -h /dev/vda 2> /dev/null | grep '^Filesystem state:.*with errors'")
            .await;
        volume.context.insert("fsck".to_owned(), "journal".to_owned());
        let staged = volume.stage().await;
        if recorded.code == 0 {
            let error = staged.unwrap_err();
            let is_reported = error.message().starts_with("FILESYSTEM_DAMAGED");
            assert!(is_reported, "{error}");
        } else {
            staged.unwrap();
            volume.unstage().await.unwrap();
        }
        volume.context.clear();
    }
    volume.come().await;
    assert_eq!(guest.read(&file).await, "before the failure");
    guest.write(&file, "after the failure").await;
    volume.leave().await;
    assert_ne!(attached.detach().await.count("after the failure"), 0);
}

#[tokio::test]
async fn ext4_on_a_disk_that_fails_is_told_and_repaired_by_staging_again() {
    let test = "ext4_on_a_disk_that_fails_is_told_and_repaired_by_staging_again";
    fails_while_mounted(test, "ext4").await;
}

#[tokio::test]
async fn xfs_on_a_disk_that_fails_is_told_and_repaired_by_staging_again() {
    let test = "xfs_on_a_disk_that_fails_is_told_and_repaired_by_staging_again";
    fails_while_mounted(test, "xfs").await;
}

#[tokio::test]
async fn a_disk_that_hangs_blocks_only_itself() {
    let Some(guest) = Guest::fresh("a_disk_that_hangs_blocks_only_itself").await else {
        return;
    };
    let node = guest.node().await;
    let hung = guest.attach_new(Kind::Virtio, "bp1hanging0000000001", 64 * MIB).await;
    let well = guest.attach_new(Kind::Virtio, "bp1healthy0000000001", 64 * MIB).await;
    let blank = guest.attach_new(Kind::Virtio, "bp1hanging0000000002", 64 * MIB).await;
    let stuck = node.volume(&hung.disk, filesystem("ext4"));
    let other = node.volume(&well.disk, filesystem("ext4"));
    stuck.come().await;
    other.come().await;
    let file = format!("{}/file", stuck.target);
    guest.write(&file, "before it hung").await;
    guest.sh("udevadm settle").await;
    hung.be(Mood::Hangs).await;
    blank.be(Mood::Hangs).await;
    // A pod that waits for the disk, so that the filesystem waits, too.
    guest.sh(&format!("(for i in $(seq 64); do head -c 65536 /dev/zero; done > {0}/waits; sync {0}/waits; echo > /run/written) > /dev/null 2>&1 &", stuck.target)).await;
    guest
        .sh("until grep -q ' D ' <(cat /proc/[0-9]*/stat 2> /dev/null); do sleep 0.1; done")
        .await;
    let late = node.volume(&blank.disk, filesystem("ext4"));
    let newcomer = guest.disk(Kind::Virtio, "bp1healthy0000000002", 64 * MIB);
    let third = node.volume(&newcomer, filesystem("ext4"));
    let beside = async {
        let attached = guest.attach(&newcomer).await;
        third.come().await;
        other.stats_within(SOON).await.unwrap();
        assert_eq!(other.health_within(SOON).await.unwrap(), []);
        let path = format!("{}/file", third.target);
        guest.write(&path, "beside a disk that hangs").await;
        third.leave().await;
        assert_ne!(attached.detach().await.count("beside a disk that hangs"), 0);
        guest.write(&format!("{}/file", other.target), "neighbour").await;
        other.leave().await;
        assert_ne!(well.detach().await.count("neighbour"), 0);
    };
    let (stats, health, staged, ()) = tokio::join!(
        stuck.stats_within(SOON),
        stuck.health_within(SOON),
        late.stage_within(Duration::from_secs(5)),
        beside
    );
    // Both may succeed or fail: they only must not wait for the disk.
    eprintln!("statistics of a disk that hangs: {stats:?}");
    eprintln!("health of a disk that hangs: {health:?}");
    eprintln!("staging a disk that hangs: {}", staged.unwrap_err());
    hung.be(Mood::Well).await;
    blank.be(Mood::Well).await;
    guest.sh("until [[ -e /run/written ]]; do sleep 0.1; done").await;
    assert_eq!(guest.read(&file).await, "before it hung");
    stuck.leave().await;
    late.come().await;
    late.leave().await;
    guest.has_no_mounts().await;
}
