//! A node with one attached disk.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use diskplugin::base::Deadline;
use diskplugin::csi::node::Service;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::linux::{Command, Exec, ExecError, Output, ProcessExec};
use tonic::Status;

pub(crate) use crate::common::csi::assert_fails;
use crate::common::csi::{filesystem, with_flags, with_mode};
pub(crate) use crate::common::disk::{Disk, MIB, SIZE};
use crate::common::machine::TestDir;
pub(crate) use crate::common::mounts::is_mounted;
use crate::common::mounts::mounts;
use crate::common::request::block;
pub(crate) use crate::common::shell::sh;
use crate::common::volume::NodePort;
pub(crate) use crate::common::volume::NodeVolume;

/// Timeout of calls that must fail at their deadline.
pub(crate) const SHORT_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs commands, and records them.
#[derive(Debug, Default)]
pub(crate) struct RecordingExec {
    commands: Mutex<Vec<String>>,
}

impl RecordingExec {
    /// The number of commands that started with this text.
    pub(crate) fn count(&self, start: &str) -> usize {
        let commands = self.commands.lock().unwrap();
        commands.iter().filter(|command| command.starts_with(start)).count()
    }
}

#[async_trait]
impl Exec for RecordingExec {
    async fn run(&self, command: &Command, deadline: Deadline) -> Result<Output, ExecError> {
        self.commands.lock().unwrap().push(command.to_string());
        ProcessExec.run(command, deadline).await
    }
}

/// A node with one disk, and the volume of the disk.
pub(crate) struct World {
    pub(crate) disk: Disk,
    pub(crate) exec: Arc<RecordingExec>,
    volume: NodeVolume,
    pub(crate) home: TestDir,
}

impl Deref for World {
    type Target = NodeVolume;

    fn deref(&self) -> &NodeVolume {
        &self.volume
    }
}

impl World {
    /// Creates and attaches a blank disk for a volume with this filesystem type, or `block`. Returns `None` and prints
    /// the reason if this machine cannot run these tests.
    pub(crate) async fn new(kind: &str) -> Option<Self> {
        let world = Self::detached(kind).await?;
        world.disk.attach().await;
        Some(world)
    }

    pub(crate) async fn detached(kind: &str) -> Option<Self> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let tools = "command -v mkfs.ext4 mkfs.xfs mkfs.btrfs sfdisk";
        if !crate::common::shell::can_run("node::service", tools).await {
            return None;
        }
        let home = TestDir::new();
        let serial = format!("nodeloop{}", CREATED.fetch_add(1, Ordering::Relaxed));
        let disk = Disk::new(home.path(), &serial, SIZE);
        let exec = Arc::new(RecordingExec::default());
        let service = Service(disk.node(Arc::clone(&exec) as _, Arc::clone(&exec) as _));
        let capability = match kind {
            "block" => block(),
            fs_type => filesystem(fs_type),
        };
        let volume = NodeVolume::new(
            NodePort::InProcess(service),
            disk.volume(),
            home.path(),
            Some(capability),
        );
        Some(Self {
            disk,
            exec,
            volume,
            home,
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// The volume with mount flags.
    pub(crate) fn with_flags(&self, flags: &[&str]) -> NodeVolume {
        let capability = self.capability.clone().map(|found| with_flags(found, flags));
        self.with(capability)
    }

    /// The volume with an access mode.
    pub(crate) fn with_mode(&self, mode: Mode) -> NodeVolume {
        let capability = self.capability.clone();
        self.with(capability.map(|found| with_mode(found.access_type, mode)))
    }

    /// Expands the volume, without the optional capability.
    pub(crate) async fn expand(&self, required: u64) -> Result<u64, Status> {
        self.with(None).expand(required).await
    }

    /// Attaches the disk to a loop device with a reserved number. An unplugged device is free for a moment, and
    /// `losetup -f` returns the free device with the lowest number, so another test would use a low number.
    pub(crate) async fn attach_reserved(&self) {
        const RESERVED: u32 = 4096;
        let device = format!("/dev/loop{}", RESERVED + std::process::id() % RESERVED);
        let image = self.disk.image.display();
        sh(&format!("losetup -f; losetup {device} {image}")).await;
        symlink(&device, self.disk.link()).unwrap();
    }

    /// Detaches a disk that is mounted: the kernel removes its device with the last use.
    pub(crate) async fn force_detach(&self) {
        sh(&format!("losetup -d {}", self.disk.device())).await;
        fs::remove_file(self.disk.link()).unwrap();
    }

    /// Detaches a disk of which only the device node is in use: the kernel removes its device immediately. Requires
    /// `attach_reserved`.
    pub(crate) async fn unplug(&self) {
        let unplug = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/service/unplug");
        sh(&format!("losetup -f; '{unplug}' {}", self.disk.device())).await;
        fs::remove_file(self.disk.link()).unwrap();
    }
}

/// The options of the mount at a path.
pub(crate) fn mount_options(path: &Path) -> Vec<String> {
    let found = mounts(path).into_iter().rfind(|line| line.point == path);
    found.unwrap().options.split(',').map(str::to_owned).collect()
}
