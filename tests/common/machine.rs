//! Leftovers of a process on the machine, and the machine's abilities.

use std::path::Path;

use nix::mount::{MntFlags, umount2};
use tempfile::TempDir;

use super::csi::endpoint;
use super::process::{Start, diskplugin};
use super::shell::can_run;

/// Whether this machine can mount filesystems and create loop devices. Prints the reason if it cannot.
pub(crate) async fn has_devices(test: &str) -> bool {
    can_run(test, "command -v mkfs.ext4 mkfs.xfs mkfs.btrfs setpriv").await
}

/// Whether the process has the capability to grow a mounted ext filesystem.
pub(crate) fn can_resize_mounted_ext() -> bool {
    const CAP_SYS_RESOURCE: u64 = 1 << 24;
    let status = std::fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = u64::from_str_radix(line.expect("a process has capabilities").trim(), 16);
    bits.expect("the kernel writes hex") & CAP_SYS_RESOURCE != 0
}

/// Folders of a node: images of disks, links to devices, and paths of volumes.
pub(crate) const NODE_FOLDERS: [&str; 3] = ["disks", "devices", "kubelet"];

/// A temporary directory passed to a process as TMPDIR. Resources that refer to it belong to that process.
#[derive(Debug)]
pub(crate) struct TestDir {
    directory: TempDir,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self::new_in(&std::env::temp_dir())
    }

    pub(crate) fn new_in(parent: &Path) -> Self {
        let directory = tempfile::tempdir_in(parent).expect("a temporary directory can be created");
        Self { directory }
    }

    /// With the folders of a node.
    pub(crate) fn of_node() -> Self {
        let home = Self::new();
        for name in NODE_FOLDERS {
            std::fs::create_dir(home.path().join(name)).expect("the directory is empty");
        }
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn text(&self) -> &str {
        self.path().to_str().expect("a path of letters")
    }

    /// The command line of a node plugin with its files in this directory.
    pub(crate) fn node_args(&self, id: &str, socket: &Path) -> Vec<String> {
        let flag = |name: &str, path: &str| format!("--{name}={}", self.path().join(path).display());
        let fixed = ["node", "--region=cn-beijing", "--zone=cn-beijing-c"].map(str::to_owned);
        let mut args = fixed.to_vec();
        args.extend([format!("--node-id={id}"), endpoint(socket)]);
        args.extend([
            flag("device-dir", "devices"),
            flag("state-dir", "state"),
            flag("kubelet-dir", ""),
        ]);
        args
    }

    /// `diskplugin` with this TMPDIR.
    pub(crate) fn diskplugin<A: AsRef<str>>(&self, args: impl IntoIterator<Item = A>) -> Start {
        diskplugin(args).env("TMPDIR", self.path())
    }

    /// All remaining mounts, loop devices, processes and files, one line each.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let mut left = self.mounts();
        left.extend(self.devices());
        left.extend(self.processes());
        left.extend(names(self.path()));
        left
    }

    fn mounts(&self) -> Vec<String> {
        let table = std::fs::read_to_string("/proc/self/mountinfo").expect("proc is mounted");
        let ours = table.lines().filter(|line| line.contains(self.text()));
        ours.filter_map(|line| line.split(' ').nth(4).map(str::to_owned))
            .collect()
    }

    fn devices(&self) -> Vec<String> {
        let ours = names("/sys/block".as_ref()).into_iter().filter(|name| {
            let file = format!("/sys/block/{name}/loop/backing_file");
            std::fs::read_to_string(file).is_ok_and(|file| file.contains(self.text()))
        });
        ours.map(|name| format!("/dev/{name}")).collect()
    }

    /// Processes that have inherited this TMPDIR.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mark = format!("TMPDIR={}\0", self.text());
        let ours = names("/proc".as_ref()).into_iter().filter(|name| {
            let environment = std::fs::read(format!("/proc/{name}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&mark)
        });
        ours.map(|pid| format!("process {pid}")).collect()
    }
}

impl Drop for TestDir {
    /// Cleans up, also after a failed test.
    fn drop(&mut self) {
        for point in self.mounts().iter().rev() {
            // Best effort: the test may have failed already.
            let _ = umount2(Path::new(point), MntFlags::MNT_DETACH);
        }
        for device in self.devices() {
            let detach = format!("blockdev --setrw {device}; losetup --detach {device}");
            Start::of("sh").args(["-c", &detach]).run_blocking();
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory exists");
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.flatten().map(name).collect()
}
