//! A node with one attached disk.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::base::error_chain;
use diskplugin::host::{Exec, Linux, ProcessExec, Roots};
use diskplugin::model::{DriverName, Filesystem, MountFlags, Tuning};
use diskplugin::node::{self, Access, NodeServices, Settings, StageRequest, UnstageRequest, Volume};

use crate::common::loop_device::{attach_command, detach_command};
use crate::common::shell::clean_up;
pub(crate) use crate::common::shell::sh;

pub(crate) const MIB: u64 = 1 << 20;

/// The disk size in bytes. btrfs has the largest minimum.
pub(crate) const SIZE: u64 = 320 * MIB;

/// Timeout of calls that must complete, also on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(300);

/// Whether this machine can run these tests. Prints the reason if not.
pub(crate) async fn can_run() -> bool {
    let tools = "command -v strace mkfs.ext4 mkfs.xfs mkfs.btrfs debugfs xfs_db";
    crate::common::shell::can_run("stage", tools).await
}

/// The state of a test. Dropping it unmounts and detaches everything, also after a panic.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    serial: String,
}

impl World {
    /// Creates a disk that is not attached. The serial must be unique among the tests.
    pub(crate) fn new(serial: &str, size: u64) -> Self {
        let world = Self {
            dir: tempfile::tempdir().unwrap(),
            serial: serial.to_owned(),
        };
        fs::create_dir(world.path("devices")).unwrap();
        let image = fs::File::create(world.image()).unwrap();
        image.set_len(size).unwrap();
        world
    }

    /// Creates and attaches a blank disk.
    pub(crate) async fn with_disk(serial: &str) -> Self {
        let world = Self::new(serial, SIZE);
        world.attach().await;
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.path(&format!("{}.img", self.serial))
    }

    fn link(&self) -> PathBuf {
        self.path("devices").join(&self.serial)
    }

    pub(crate) fn device(&self) -> String {
        let device = fs::read_link(self.link()).unwrap();
        device.to_str().unwrap().to_owned()
    }

    /// Attaches the disk as the fake cloud does.
    pub(crate) async fn attach(&self) {
        let device = sh(&attach_command(&self.image())).await;
        symlink(&device, self.link()).unwrap();
    }

    pub(crate) async fn detach(&self) {
        sh(&detach_command(&self.device())).await;
        fs::remove_file(self.link()).unwrap();
    }

    /// The SHA-256 of the content of the disk.
    pub(crate) async fn hash(&self) -> String {
        let device = self.device();
        sh(&format!("sync {device}; sha256sum < {device}")).await
    }

    /// A new node that runs commands with `exec`.
    pub(crate) fn node_with(&self, exec: Arc<dyn Exec>) -> Arc<NodeServices> {
        let host = Arc::new(Linux::new(Arc::new(ProcessExec), Roots::default()));
        let settings = Settings {
            id: "i-test".parse().unwrap(),
            zone: "cn-beijing-c".parse().unwrap(),
            max_volumes: None,
            categories: Vec::new(),
            instance_types: Default::default(),
            device_dir: Some(self.path("devices")),
            kubelet_dir: self.dir.path().to_owned(),
            state_dir: self.path("state"),
        };
        Arc::new(NodeServices::new(host, exec, settings, DriverName::default(), None))
    }

    pub(crate) fn node(&self) -> Arc<NodeServices> {
        self.node_with(Arc::new(ProcessExec))
    }

    pub(crate) fn volume(&self) -> Volume {
        Volume::new(format!("d-{}", self.serial).parse().unwrap(), None)
    }

    pub(crate) fn request(&self, filesystem: Filesystem) -> StageRequest {
        StageRequest {
            volume: self.volume(),
            staging: self.path("staging").to_str().unwrap().parse().unwrap(),
            access: Access::Mount {
                filesystem,
                flags: MountFlags::default(),
            },
            read_only: false,
            device_read_only: false,
            tuning: Tuning::default(),
        }
    }

    /// Stages with a new node. Retries host timeouts until the deadline, as kubelet does. The error includes its
    /// causes.
    pub(crate) async fn stage(&self, filesystem: Filesystem) -> Result<(), String> {
        let deadline = Deadline::after(TIMEOUT);
        loop {
            let request = self.request(filesystem);
            let staged = self.node().stager.stage(request, deadline).await.map_err(error_text);
            match staged {
                Err(error) if error.starts_with("HOST_TIMEOUT") && !deadline.has_passed() => {}
                result => return result,
            }
        }
    }

    pub(crate) async fn unstage(&self) {
        let request = UnstageRequest {
            volume: self.volume(),
            staging: self.path("staging").to_str().unwrap().parse().unwrap(),
        };
        let deadline = Deadline::after(TIMEOUT);
        self.node().unstager.unstage(request, deadline).await.unwrap();
    }

    /// The number of format records.
    pub(crate) fn format_records(&self) -> usize {
        fs::read_dir(self.path("state/format")).map_or(0, Iterator::count)
    }
}

/// The error name and the error with its causes.
#[expect(clippy::needless_pass_by_value, reason = "map_err passes the error by value")]
pub(crate) fn error_text(error: node::Error) -> String {
    format!("{}: {}", error.failure().name(), error_chain(&error))
}

pub(crate) fn is_mounted(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let point = path.to_str();
    table.lines().any(|line| line.split(' ').nth(4) == point)
}

impl Drop for World {
    fn drop(&mut self) {
        clean_up(self.dir.path());
    }
}
