//! What must hold on disks that come and go. Only `make test-all` runs what is below this module, in guests.

mod broken;
mod btrfs;
mod burst;
mod filesystem_error;
mod filesystems;
mod find;
mod grow;
mod interrupted_mkfs;
mod late_serial;
mod life;
mod nvme;
mod out_of_memory;
mod partition;
mod reboot;
mod selinux;
mod unplug;

use crate::machine::Guest;

impl Guest {
    /// Fails where anything of kubelet's is still mounted.
    async fn has_no_mounts(&self) {
        let left = self.sh("grep kubelet /proc/self/mountinfo || true").await;
        assert_eq!(left, "", "it is still mounted");
    }

    /// Waits until a device node exists and udev has finished with it.
    async fn has_device(&self, path: &str) {
        self.sh(&format!("until [[ -b {path} ]]; do sleep 0.05; done; udevadm settle"))
            .await;
    }

    /// Puts this text into a file, and has it on the disk.
    async fn write(&self, path: &str, text: &str) {
        self.sh(&format!("echo '{text}' > {path}; sync {path}")).await;
    }

    async fn read(&self, path: &str) -> String {
        self.sh(&format!("cat {path}")).await
    }
}
