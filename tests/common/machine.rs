//! What a process leaves on the machine, and whether the machine is good for a test.

use std::path::Path;

use nix::mount::{MntFlags, umount2};
use tempfile::TempDir;

use super::process::{Start, diskplugin};

/// Whether this machine can mount and make loop devices; aloud when it cannot.
pub(crate) async fn has_devices(test: &str) -> bool {
    let probe = "test $(id -u) = 0 && f=$(mktemp) && truncate -s 1M $f && d=$(losetup -f --show $f) \
         && losetup -d $d && rm $f && command -v mkfs.ext4 mkfs.xfs mkfs.btrfs setpriv";
    let ended = Start::of("sh").args(["-ec", probe]).ended().await;
    if ended.code == Some(0) {
        return true;
    }
    let reason = format!(
        "root, loop devices and the tools of filesystems are needed: {}",
        ended.stderr
    );
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "nothing is skipped in CI: {reason}");
    eprintln!("SKIPPED: {test} because {reason}");
    false
}

/// Whether the kernel lets this machine grow a mounted ext filesystem.
pub(crate) fn grows_mounted_ext() -> bool {
    const CAP_SYS_RESOURCE: u64 = 1 << 24;
    let status = std::fs::read_to_string("/proc/self/status").expect("proc is mounted");
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = u64::from_str_radix(line.expect("a process has capabilities").trim(), 16);
    bits.expect("the kernel writes hex") & CAP_SYS_RESOURCE != 0
}

/// A directory for everything that a process makes, told to it as TMPDIR. What mentions it belongs
/// to that process.
#[derive(Debug)]
pub(crate) struct Home {
    directory: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("there is a place for temporary files"),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    fn text(&self) -> &str {
        self.path().to_str().expect("a path of letters")
    }

    /// `diskplugin` at home here.
    pub(crate) fn diskplugin(&self, args: &[&str]) -> Start {
        diskplugin(args).env("TMPDIR", self.path())
    }

    /// All that is left: mounts, loop devices, processes, files; a line each.
    pub(crate) fn left(&self) -> Vec<String> {
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

    /// Processes that have inherited the directory as theirs.
    pub(crate) fn processes(&self) -> Vec<String> {
        let mark = format!("TMPDIR={}\0", self.text());
        let ours = names("/proc".as_ref()).into_iter().filter(|name| {
            let environment = std::fs::read(format!("/proc/{name}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(&mark)
        });
        ours.map(|pid| format!("process {pid}")).collect()
    }
}

impl Drop for Home {
    /// After a failed test: takes down what the process under test should have.
    fn drop(&mut self) {
        for point in self.mounts().iter().rev() {
            // Best effort: the test has failed already.
            let _ = umount2(Path::new(point), MntFlags::MNT_DETACH);
        }
        for device in self.devices() {
            Start::of("losetup")
                .args(["--detach", &device])
                .run_blocking();
        }
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("a directory that is there");
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    entries.flatten().map(name).collect()
}
