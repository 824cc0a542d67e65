//! Disks that return errors, and disks that hang.

use std::time::Duration;

use crate::common::csi::filesystem;
use crate::disk::{Fault, Kind, MIB};
use crate::hotplug::started;

/// Timeout of calls that must not wait for a hung disk, on a busy machine.
const PROMPT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_disk_that_fails_during_staging_is_not_formatted_and_is_staged_later() {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1failing0000000001", 64 * MIB).await;
    guest.sh("udevadm settle").await;
    let volume = node.volume(&attached.disk, filesystem("ext4"));
    attached.set_fault(Fault::Errors).await;
    let error = volume.stage().await.unwrap_err();
    eprintln!("staging a failing disk: {error}");
    guest.has_no_mounts().await;
    assert!(!attached.disk.has_content(), "the disk was written to");
    attached.set_fault(Fault::None).await;
    volume.mount().await;
    volume.unmount().await;
}

/// The disk fails while it is mounted: the volume health reports that, and the volume works again after the disk does.
async fn fails_while_mounted(fs_type: &str) {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1failing0000000002", 320 * MIB).await;
    let mut volume = node.volume(&attached.disk, filesystem(fs_type));
    volume.mount().await;
    let file = volume.file();
    guest.write(&file, "before the failure").await;
    attached.set_fault(Fault::Errors).await;
    // Only the process that issued a failed write gets its error. The filesystem shuts down when it cannot write its
    // journal. Each round creates new files: ext4 discards a new timestamp of an existing file without an error.
    let wait_for_shutdown = format!(
        "until i=$((i + 1)); ! {{ touch {0}/a$i && sync {0}/a$i; }} && ! touch {0}/b$i; do sleep 0.2; done 2> /dev/null",
        volume.target
    );
    guest.sh(&wait_for_shutdown).await;
    if let Err(error) = volume.stats().await {
        eprintln!("statistics of a failing disk: {error}");
    }
    // A filesystem that has shut down may reject every request.
    match volume.health().await {
        Ok(health) => assert!(!health.is_empty()),
        Err(error) => eprintln!("health of a failing disk: {error}"),
    }
    attached.set_fault(Fault::None).await;
    volume.unpublish().await.unwrap();
    // The kernel reports lost writes once, and so does unstaging.
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
            assert!(error.message().starts_with("FILESYSTEM_DAMAGED"), "{error}");
        } else {
            staged.unwrap();
            volume.unstage().await.unwrap();
        }
        volume.context.clear();
    }
    volume.mount().await;
    assert_eq!(guest.read(&file).await, "before the failure");
    guest.write(&file, "after the failure").await;
    volume.unmount().await;
    assert_ne!(attached.detach().await.count("after the failure"), 0);
}

crate::common::rows! { fails_while_mounted:
    ext4_on_a_failing_disk_is_reported_and_repaired_by_staging_again("ext4"),
    xfs_on_a_failing_disk_is_reported_and_repaired_by_staging_again("xfs"),
}

#[tokio::test]
async fn a_hung_disk_blocks_only_its_own_volume() {
    let Some((guest, node)) = started().await else { return };
    let hung = guest.attach_new(Kind::Virtio, "bp1hanging0000000001", 64 * MIB).await;
    let healthy = guest.attach_new(Kind::Virtio, "bp1healthy0000000001", 64 * MIB).await;
    let blank = guest.attach_new(Kind::Virtio, "bp1hanging0000000002", 64 * MIB).await;
    let stuck = node.volume(&hung.disk, filesystem("ext4"));
    let other = node.volume(&healthy.disk, filesystem("ext4"));
    stuck.mount().await;
    other.mount().await;
    let file = stuck.file();
    guest.write(&file, "before the hang").await;
    guest.sh("udevadm settle").await;
    hung.set_fault(Fault::Hang).await;
    blank.set_fault(Fault::Hang).await;
    // Simulates a pod that waits for the disk, which blocks the filesystem too.
    guest.sh(&format!("(for i in $(seq 64); do head -c 65536 /dev/zero; done > {0}/waits; sync {0}/waits; echo > /run/written) > /dev/null 2>&1 &", stuck.target)).await;
    guest
        .sh("until grep -q ' D ' <(cat /proc/[0-9]*/stat 2> /dev/null); do sleep 0.1; done")
        .await;
    let late = node.volume(&blank.disk, filesystem("ext4"));
    let new_disk = guest.disk(Kind::Virtio, "bp1healthy0000000002", 64 * MIB);
    let third = node.volume(&new_disk, filesystem("ext4"));
    let others = async {
        let attached = guest.attach(&new_disk).await;
        third.mount().await;
        other.within(PROMPT).stats().await.unwrap();
        assert_eq!(other.within(PROMPT).health().await.unwrap(), []);
        let path = third.file();
        guest.write(&path, "while another disk hangs").await;
        third.unmount().await;
        assert_ne!(attached.detach().await.count("while another disk hangs"), 0);
        guest.write(&other.file(), "neighbour").await;
        other.unmount().await;
        assert_ne!(healthy.detach().await.count("neighbour"), 0);
    };
    let (prompt, late_stage) = (stuck.within(PROMPT), late.within(Duration::from_secs(5)));
    let calls = (prompt.stats(), prompt.health(), late_stage.stage());
    let (stats, health, staged, ()) = tokio::join!(calls.0, calls.1, calls.2, others);
    // Both calls may succeed or fail, but must not wait for the disk.
    eprintln!("statistics of a hung disk: {stats:?}");
    eprintln!("health of a hung disk: {health:?}");
    eprintln!("staging a hung disk: {}", staged.unwrap_err());
    hung.set_fault(Fault::None).await;
    blank.set_fault(Fault::None).await;
    guest.sh("until [[ -e /run/written ]]; do sleep 0.1; done").await;
    assert_eq!(guest.read(&file).await, "before the hang");
    stuck.unmount().await;
    late.mount().await;
    late.unmount().await;
    guest.has_no_mounts().await;
}
