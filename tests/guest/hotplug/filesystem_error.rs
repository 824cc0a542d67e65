//! An ext4 in which the kernel finds an error.

use tonic::Code;

use crate::common::csi::{assert_fails, filesystem};
use crate::disk::{Kind, MIB};
use crate::hotplug::started;

#[tokio::test]
async fn an_ext4_error_is_reported_stops_writes_and_is_repaired_by_the_next_stage() {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1fserror0000000001", 64 * MIB).await;
    let mut volume = node.volume(&attached.disk, filesystem("ext4"));
    volume.mount().await;
    let file = volume.file();
    guest.write(&file, "before the error").await;
    guest
        .sh("echo an error of the test > /sys/fs/ext4/vda/trigger_fs_error")
        .await;
    let written = guest.try_sh(&format!("echo x > {file}.new")).await;
    assert_ne!(written.code, 0, "the filesystem is still writable");
    let health = volume.health().await.unwrap();
    let reasons: Vec<&str> = health.iter().map(|entry| entry.reason.as_str()).collect();
    assert_eq!(reasons, ["RemountedReadOnly", "FilesystemErrors"]);
    for entry in &health {
        assert!(entry.message.contains("`e2fsck -p` repairs"), "{entry:?}");
    }
    // Linux 6.12 also rejects reads.
    let read = guest.try_sh(&format!("cat {file}")).await.text;
    let is_error = read.ends_with("Input/output error");
    assert!(is_error || read == "before the error", "{read}");

    volume.unpublish().await.unwrap();
    assert_fails(
        volume.publish().await,
        Code::FailedPrecondition,
        &["REMOUNTED_READ_ONLY"],
    );
    volume.unmount().await;

    volume.context.insert("fsck".to_owned(), "journal".to_owned());
    assert_fails(volume.stage().await, Code::FailedPrecondition, &["FILESYSTEM_DAMAGED"]);
    volume.context.clear();
    volume.mount().await;
    assert_eq!(volume.health().await.unwrap(), []);
    assert_eq!(guest.read(&file).await, "before the error");
    guest.write(&file, "after the repair").await;
    volume.unmount().await;
    guest.has_no_mounts().await;
    assert_ne!(attached.detach().await.count("after the repair"), 0);
}
