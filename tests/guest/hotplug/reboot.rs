//! A node that loses power with staged and published volumes. kubelet's directories and the driver's records are on a
//! disk; the attached disks have other names after the boot.

use crate::common::csi::filesystem;
use crate::common::request::block;
use crate::common::volume::NodeVolume;
use crate::disk::{Disk, Kind, MIB};
use crate::machine::Guest;
use crate::node::Node;

const SIZE: u64 = 320 * MIB;

/// Mounts the node's own disk, which must be attached first.
async fn mount_node_disk(guest: &Guest) {
    guest.has_device("/dev/disk/by-id/virtio-nodedisk").await;
    let mount = "mount /dev/disk/by-id/virtio-nodedisk /var/lib/kubelet
         mkdir -p /var/lib/kubelet/diskplugin /var/lib/diskplugin
         mount --bind /var/lib/kubelet/diskplugin /var/lib/diskplugin
         mount --make-shared /var/lib/kubelet";
    guest.sh(mount).await;
}

const SECOND_EXISTS: &str = "until [[ -e /sys/block/vdb/serial && -b /dev/vdb ]]; do sleep 0.05; done";

/// The names and UUIDs of the volumes' disks by serial.
async fn describe(guest: &Guest, serial: &str) -> (String, String) {
    let script = format!(
        "until name=$(readlink -e /dev/disk/by-id/*{serial}); do sleep 0.05; done; echo $name; blkid -p -s UUID -o value $name || true"
    );
    let text = guest.sh(&script).await;
    let (name, uuid) = text.split_once('\n').unwrap_or((&text, ""));
    (name.to_owned(), uuid.to_owned())
}

/// Waits, because the kernel names disks in the order of discovery.
async fn attach_and_wait(guest: &Guest, disk: &Disk) {
    guest.attach(disk).await;
    describe(guest, &disk.serial).await;
}

struct Rebooted {
    guest: Guest,
    disks: Vec<Disk>,
    /// A blank disk without serial that is attached after the power loss.
    unrelated: Disk,
}

const KINDS: [(&str, Kind, &str); 5] = [
    ("bp1reboot000000ext4", Kind::Virtio, "ext4"),
    ("bp1reboot0000000xfs", Kind::Virtio, "xfs"),
    ("bp1reboot00000btrfs", Kind::Virtio, "btrfs"),
    ("bp1reboot00000block", Kind::Virtio, "block"),
    ("bp1reboot000000nvme", Kind::Nvme, "ext4"),
];

fn volumes(node: &Node, disks: &[Disk]) -> Vec<NodeVolume> {
    let volumes = disks.iter().zip(KINDS);
    volumes
        .map(|(disk, (_, _, fs_type))| match fs_type {
            "block" => node.volume(disk, block()),
            _ => node.volume(disk, filesystem(fs_type)),
        })
        .collect()
}

/// The text that the volume holds.
async fn content(guest: &Guest, volume: &NodeVolume, fs_type: &str) -> String {
    match fs_type {
        "block" => {
            let read = format!("head -c 4096 {} | tr -d '\\0'", volume.target);
            guest.sh(&read).await
        }
        _ => guest.read(&volume.file()).await,
    }
}

fn text(volume: &NodeVolume) -> String {
    format!("content of {}", volume.id)
}

/// Stages and publishes volumes, loses power and boots, with the disks attached in another order.
async fn rebooted() -> Option<Rebooted> {
    let mut guest = Guest::fresh().await?;
    let node_disk = guest.disk(Kind::Virtio, "nodedisk", 128 * MIB);
    let disks: Vec<Disk> = KINDS
        .iter()
        .map(|(serial, kind, _)| guest.disk(*kind, serial, SIZE))
        .collect();
    let boot = "cat /proc/sys/kernel/random/boot_id";
    let boot_before = guest.sh(boot).await;
    guest.attach(&node_disk).await;
    guest.has_device("/dev/disk/by-id/virtio-nodedisk").await;
    guest.sh("mkfs.ext4 -q /dev/disk/by-id/virtio-nodedisk").await;
    mount_node_disk(&guest).await;
    for disk in &disks {
        attach_and_wait(&guest, disk).await;
    }
    let node = guest.node().await;
    let mut before = Vec::new();
    for (volume, (serial, _, fs_type)) in volumes(&node, &disks).iter().zip(KINDS) {
        volume.mount().await;
        let text = text(volume);
        let write = match fs_type {
            "block" => format!("echo '{text}' | dd of={} conv=fsync,notrunc status=none", volume.target),
            _ => format!("echo '{text}' > {0}/file; sync {0}/file", volume.target),
        };
        guest.sh(&write).await;
        before.push(describe(&guest, serial).await);
    }
    guest.sh("sync -f /var/lib/kubelet").await;

    guest.power_cycle().await;
    assert_ne!(guest.sh(boot).await, boot_before);
    guest.attach(&node_disk).await;
    mount_node_disk(&guest).await;
    // A blank disk without a serial gets the device name of the first volume's disk.
    let unrelated = guest.disk(Kind::Virtio, "", SIZE);
    guest.attach(&unrelated).await;
    guest.sh(SECOND_EXISTS).await;
    for disk in disks.iter().rev() {
        attach_and_wait(&guest, disk).await;
    }
    guest.sh("udevadm settle").await;
    let mut moved = 0;
    for ((serial, _, _), (name, uuid)) in KINDS.iter().zip(&before) {
        let (now, uuid_now) = describe(&guest, serial).await;
        assert_eq!(uuid_now, *uuid, "{serial}");
        moved += usize::from(now != *name);
    }
    assert!(moved >= 2, "the disks have the same names as before");
    let records = guest.sh("ls -R /var/lib/diskplugin | grep -c bp1reboot").await;
    assert_eq!(records, KINDS.len().to_string());
    Some(Rebooted {
        guest,
        disks,
        unrelated,
    })
}

impl Rebooted {
    /// Asserts that the volumes have their content, and that nothing was formatted.
    async fn check(&self, volumes: &[NodeVolume]) {
        let Self { guest, .. } = self;
        for (volume, (_, _, fs_type)) in volumes.iter().zip(KINDS) {
            assert_eq!(content(guest, volume, fs_type).await, text(volume));
            assert_eq!(volume.health().await.unwrap(), []);
        }
        for volume in volumes {
            volume.unmount().await;
        }
        guest.sh("umount /var/lib/diskplugin").await;
        guest
            .sh("! grep -E 'kubelet/(pods|plugins)' /proc/self/mountinfo")
            .await;
        let log = guest.log();
        assert!(!log.contains("create a filesystem"), "{log}");
        assert!(!self.unrelated.has_content(), "the disk was written to");
    }
}

/// kubelet cleans up directories of pods that no longer exist.
#[tokio::test]
async fn after_a_power_loss_stale_volumes_are_unstaged_and_staged_again() {
    let Some(world) = rebooted().await else {
        return;
    };
    let node = world.guest.node().await;
    let volumes = volumes(&node, &world.disks);
    for volume in &volumes {
        volume.unmount().await;
        volume.unmount().await;
    }
    for volume in &volumes {
        volume.mount().await;
    }
    world.check(&volumes).await;
}

/// The same pods start again.
#[tokio::test]
async fn after_a_power_loss_volumes_are_staged_and_published_at_their_old_paths() {
    let Some(world) = rebooted().await else {
        return;
    };
    let node = world.guest.node().await;
    let volumes = volumes(&node, &world.disks);
    for volume in &volumes {
        volume.mount().await;
    }
    world.check(&volumes).await;
}
