//! The lifecycle of a volume.

use crate::common::csi::{filesystem, read_only};
use crate::common::request::block;
use crate::disk::{Kind, MIB};
use crate::hotplug::started;

const SIZE: u64 = 64 * MIB;

/// Mounts and unmounts the volume twice with repeated calls; the disk is detached in between.
async fn content_survives(kind: Kind) {
    let Some((guest, node)) = started().await else { return };
    let disk = guest.disk(kind, "bp1lifeoftest0000001", SIZE);
    let volume = node.volume(&disk, filesystem("ext4"));
    let file = volume.file();
    let text = format!("content of {kind:?}");
    for round in 0..2 {
        let attached = guest.attach(&disk).await;
        volume.mount().await;
        volume.mount().await;
        if round == 0 {
            guest.write(&file, &text).await;
        }
        assert_eq!(guest.read(&file).await, text);
        volume.unmount().await;
        volume.unmount().await;
        guest.has_no_mounts().await;
        attached.detach().await;
        assert_ne!(disk.count(&text), 0, "the content is on another disk");
    }
}

crate::common::rows! { content_survives:
    content_survives_on_a_virtio_disk(Kind::Virtio),
    content_survives_on_an_nvme_disk(Kind::Nvme),
}

#[tokio::test]
async fn a_raw_block_volume_is_the_disk_itself() {
    let Some((guest, node)) = started().await else { return };
    for (kind, serial) in [
        (Kind::Virtio, "bp1raw000000000000v"),
        (Kind::Nvme, "bp1raw000000000000n"),
    ] {
        let attached = guest.attach_new(kind, serial, SIZE).await;
        let volume = node.volume(&attached.disk, block());
        volume.mount().await;
        let script = format!(
            "echo 'raw {serial}' | dd of={} bs=512 seek=9 conv=fsync,notrunc status=none",
            volume.target
        );
        guest.sh(&script).await;
        volume.unmount().await;
        guest.has_no_mounts().await;
        let disk = attached.detach().await;
        let bytes = std::fs::read(&disk.image).unwrap();
        let text = format!("raw {serial}\n");
        assert_eq!(&bytes[9 * 512..][..text.len()], text.as_bytes());
    }
}

#[tokio::test]
async fn a_read_only_volume_is_not_changed() {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1readonly000000001", SIZE).await;
    let writer = node.volume(&attached.disk, filesystem("ext4"));
    writer.mount().await;
    let file = writer.file();
    guest.write(&file, "to be read").await;
    writer.unmount().await;
    let disk = attached.detach().await;
    let before = std::fs::read(&disk.image).unwrap();
    for locked in [false, true] {
        for capability in [filesystem("ext4"), block()] {
            let attached = match locked {
                true => guest.attach_read_only(&disk).await,
                false => guest.attach(&disk).await,
            };
            let is_block = capability == block();
            let reader = node.volume(&disk, read_only(capability));
            reader.mount().await;
            let written = match is_block {
                true => {
                    guest.sh(&format!("grep -aq 'to be read' {}", reader.target)).await;
                    let script = format!("echo x | dd of={} conv=fsync,notrunc status=none", reader.target);
                    guest.try_sh(&script).await
                }
                false => {
                    assert_eq!(guest.read(&file).await, "to be read");
                    guest.try_sh(&format!("echo x > {}/other", reader.target)).await
                }
            };
            assert_ne!(written.code, 0, "the volume is writable: {}", written.text);
            reader.unmount().await;
            attached.detach().await;
            assert!(std::fs::read(&disk.image).unwrap() == before, "the disk was changed");
        }
    }
}

#[tokio::test]
async fn a_killed_node_plugin_resumes_with_its_mounts() {
    let Some((guest, node)) = started().await else { return };
    let attached = guest.attach_new(Kind::Virtio, "bp1killed00000000001", SIZE).await;
    let volume = node.volume(&attached.disk, filesystem("ext4"));
    volume.mount().await;
    guest.write(&volume.file(), "before the kill").await;
    guest.sh("kill -9 $(cat /run/node.pid)").await;
    let node = guest.node().await;
    let volume = node.volume(&attached.disk, filesystem("ext4"));
    volume.mount().await;
    assert_eq!(guest.read(&volume.file()).await, "before the kill");
    volume.unmount().await;
    guest.has_no_mounts().await;
}
