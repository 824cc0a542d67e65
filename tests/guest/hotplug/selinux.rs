//! SELinux labels in mount options, as kubelet sends them (`context="…"`) for a CSIDriver with `seLinuxMount: true`, on
//! a kernel that enforces a policy.

use crate::common::csi::{filesystem, read_only, with_flags};
use crate::common::volume::NodeVolume;
use crate::disk::{Kind, MIB};
use crate::machine::Guest;

/// Levels as kubelet requests them, and as the kernel prints them. OpenShift assigns categories in descending order.
const LEVELS: [(&str, &str); 3] = [
    ("s0:c26,c5", "s0:c5,c26"),
    ("s0:c3,c2,c1", "s0:c1.c3"),
    ("s0-s0:c1023,c0.c1022", "s0-s0:c0.c1023"),
];

/// Boots a guest that enforces the policy of `policy.conf`.
async fn enforcing() -> Option<Guest> {
    let guest = Guest::booted("security=selinux enforcing=1").await?;
    let categories: String = (0..1024).map(|n| format!("category c{n};\n")).collect();
    let policy = include_str!("policy.conf").replace("CATEGORIES\n", &categories);
    // The kernel reads a policy in one write. Linux 5.10 supports version 31.
    let load = format!(
        "cat > /run/policy.conf <<'END'\n{policy}END\n\
         checkpolicy -M -U allow -c 31 -o /run/policy /run/policy.conf > /dev/null
         mount -t selinuxfs selinuxfs /sys/fs/selinux
         dd if=/run/policy of=/sys/fs/selinux/load bs=16M status=none
         cat /sys/fs/selinux/enforce"
    );
    assert_eq!(guest.sh(&load).await, "1");
    Some(guest)
}

fn label(level: &str) -> String {
    format!("system_u:object_r:container_file_t:{level}")
}

impl NodeVolume {
    /// The volume with a mount label, in kubelet's format.
    fn at_level(&self, level: &str) -> Self {
        let flag = format!("context=\"{}\"", label(level));
        self.with(self.capability.clone().map(|found| with_flags(found, &[&flag])))
    }

    /// Stages and publishes with repeated calls, and checks that each path is mounted only once.
    async fn mount_twice(&self, guest: &Guest) {
        self.mount().await;
        self.mount().await;
        for path in [&self.staging, &self.target] {
            let count = format!("grep -c ' {path} ' /proc/self/mountinfo");
            assert_eq!(guest.sh(&count).await, "1", "{path}");
        }
    }
}

/// The command, run with the label of a container of this level.
fn in_container(level: &str, command: &str) -> String {
    format!(
        "bash -c \"echo -n system_u:system_r:container_t:{level} > /proc/self/attr/exec; exec bash -c '{command}'\""
    )
}

async fn labels_are_mounted(fs_type: &str, size: u64) {
    let Some(guest) = enforcing().await else {
        return;
    };
    let mut node = guest.node().await;
    let attached = guest.attach_new(Kind::Virtio, "bp1selinux0000000001", size).await;
    for (requested, printed) in LEVELS {
        eprintln!("level {requested}");
        let volume = node.volume(&attached.disk, filesystem(fs_type));
        let volume = volume.at_level(requested);
        volume.mount_twice(&guest).await;
        let options = format!("findmnt -rno FS-OPTIONS -M {} | tr -d '\"'", volume.staging);
        let options = guest.sh(&options).await;
        let context = format!("context={}", label(printed));
        assert!(options.contains(&context), "{options}");

        guest.sh("kill -9 $(cat /run/node.pid)").await;
        node = guest.node().await;
        let volume = node.volume(&attached.disk, filesystem(fs_type)).at_level(requested);
        volume.mount_twice(&guest).await;

        volume.unpublish().await.unwrap();
        let reader = volume.read_only();
        reader.mount_twice(&guest).await;
        let write = format!("echo x > {}/other", reader.target);
        assert_ne!(guest.try_sh(&write).await.code, 0);
        reader.unmount().await;

        let reader = node.volume(&attached.disk, read_only(filesystem(fs_type)));
        let reader = reader.at_level(requested);
        reader.mount_twice(&guest).await;
        reader.unmount().await;
        guest.has_no_mounts().await;
    }
    a_container_needs_the_categories(&guest, &node.volume(&attached.disk, filesystem(fs_type))).await;
}

/// The policy is enforced: only a container with the categories of the volume reads it.
async fn a_container_needs_the_categories(guest: &Guest, volume: &NodeVolume) {
    let volume = volume.at_level("s0:c26,c5");
    volume.mount().await;
    let file = volume.file();
    let write = in_container("s0:c5,c26", &format!("echo text > {file}"));
    guest.sh(&write).await;
    let read = format!("cat {file}");
    assert_eq!(guest.sh(&in_container("s0:c5,c26", &read)).await, "text");
    let denied = guest.try_sh(&in_container("s0:c5,c27", &read)).await;
    assert!(denied.text.contains("Permission denied"), "{}", denied.text);
    volume.unmount().await;
    guest.has_no_mounts().await;
}

crate::common::rows! { labels_are_mounted:
    selinux_labels_of_ext4_are_mounted("ext4", 64 * MIB),
    selinux_labels_of_xfs_are_mounted("xfs", 320 * MIB),
}
