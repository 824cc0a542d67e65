//! Tests on hot-plugged disks, each in a guest. `make test-all` and `make guests` run them.

mod broken;
mod btrfs;
mod burst;
mod filesystem_error;
mod filesystems;
mod find;
mod grow;
mod interrupted_mkfs;
mod late_serial;
mod lifecycle;
mod nvme;
mod out_of_memory;
mod partition;
mod reboot;
mod selinux;
mod unplug;

use crate::machine::Guest;
use crate::node::Node;

/// A guest with the node plugin; none with a message if guests are not supported.
async fn started() -> Option<(Guest, Node)> {
    let guest = Guest::fresh().await?;
    let node = guest.node().await;
    Some((guest, node))
}

impl Guest {
    /// Panics if anything is mounted below kubelet's directory.
    async fn has_no_mounts(&self) {
        let left = self.sh("grep kubelet /proc/self/mountinfo || true").await;
        assert_eq!(left, "", "still mounted");
    }

    /// Waits until a device node exists and udev has finished with it.
    async fn has_device(&self, path: &str) {
        self.sh(&format!("until [[ -b {path} ]]; do sleep 0.05; done; udevadm settle"))
            .await;
    }

    /// Writes a text to a file and syncs it.
    async fn write(&self, path: &str, text: &str) {
        self.sh(&format!("echo '{text}' > {path}; sync {path}")).await;
    }

    async fn read(&self, path: &str) -> String {
        self.sh(&format!("cat {path}")).await
    }
}
