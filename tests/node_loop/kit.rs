//! A machine with one attached disk, and its node.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use diskplugin::csi::node::Service;
use diskplugin::csi::proto::node_server::Node as _;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::{
    CapacityRange, NodeExpandVolumeRequest, NodeGetVolumeStatsRequest, NodePublishVolumeRequest,
    NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, VolumeCapability,
};
use diskplugin::host::{Exec, Linux, Processes, Roots};
use diskplugin::node::{Node, Settings};
use tonic::{Request, Status};

use crate::loop_device::{attach_command, detach_command};
use crate::shell::clean_up;
pub(crate) use crate::shell::sh;

pub(crate) const MIB: u64 = 1 << 20;

/// btrfs wants the most room.
pub(crate) const SIZE: u64 = 320 * MIB;

/// Time that suffices on a busy machine, too.
pub(crate) const AMPLE: Duration = Duration::from_secs(60);

/// Time for what is to be waited for in vain.
pub(crate) const BRIEF: Duration = Duration::from_secs(2);

/// Whether this machine can run these tests; aloud when it cannot.
pub(crate) async fn can_run() -> bool {
    let tools = "command -v mkfs.ext4 mkfs.xfs mkfs.btrfs sfdisk";
    crate::shell::can_run("node_loop", tools).await
}

/// A machine with one attached disk. Dropping it takes everything down, also in a panic.
pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) serial: String,
    pub(crate) service: Service,
}

impl World {
    /// An attached blank disk; the serial must differ from test to test.
    pub(crate) async fn new(serial: &str) -> Self {
        let world = Self::without_device(serial);
        world.attach().await;
        world
    }

    pub(crate) fn without_device(serial: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("devices")).unwrap();
        let exec: Arc<dyn Exec> = Arc::new(Processes);
        let host = Arc::new(Linux::new(Arc::clone(&exec), Roots::default()));
        let settings = Settings {
            id: "i-test".parse().unwrap(),
            zone: "cn-beijing-c".parse().unwrap(),
            max_volumes: None,
            categories: Vec::new(),
            types: Default::default(),
            device_dir: Some(dir.path().join("devices")),
            kubelet_dir: dir.path().to_owned(),
            state_dir: dir.path().join("state"),
        };
        let world = Self {
            service: Service::new(Arc::new(Node::new(host, exec, settings))),
            serial: serial.to_owned(),
            dir,
        };
        let image = fs::File::create(world.image()).unwrap();
        image.set_len(SIZE).unwrap();
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.path(&format!("{}.img", self.serial))
    }

    pub(crate) fn link(&self) -> PathBuf {
        self.path("devices").join(&self.serial)
    }

    /// What the fake cloud does when it attaches.
    pub(crate) async fn attach(&self) -> String {
        let device = sh(&attach_command(&self.image())).await;
        symlink(&device, self.link()).unwrap();
        device
    }

    /// The same, by a number of its own: an unplugged device is free for a moment, and who asks for a free one gets the one
    /// with the lowest number. `losetup -f` makes a lower one where there is none.
    pub(crate) async fn attach_apart(&self) {
        const APART: u32 = 4096;
        let device = format!("/dev/loop{}", APART + std::process::id() % APART);
        let image = self.image().display().to_string();
        sh(&format!("losetup -f; losetup {device} {image}")).await;
        symlink(&device, self.link()).unwrap();
    }

    pub(crate) fn device(&self) -> PathBuf {
        fs::read_link(self.link()).unwrap()
    }

    /// What happens when a disk is taken away that is mounted: its device leaves with the last use.
    pub(crate) async fn tear_out(&self) {
        sh(&format!("losetup -d {}", self.device().display())).await;
        fs::remove_file(self.link()).unwrap();
    }

    /// What happens when a disk is taken away of which only the node is in use: its device leaves at once. It was attached
    /// apart.
    pub(crate) async fn unplug(&self) {
        let unplug = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node_loop/unplug");
        sh(&format!(
            "losetup -f; '{unplug}' {}",
            self.device().display()
        ))
        .await;
        fs::remove_file(self.link()).unwrap();
    }

    pub(crate) async fn detach(&self) {
        sh(&detach_command(self.device().to_str().unwrap())).await;
        fs::remove_file(self.link()).unwrap();
    }

    pub(crate) fn volume(&self) -> String {
        format!("d-{}", self.serial)
    }

    /// What is on the disk.
    pub(crate) async fn hash(&self) -> String {
        let device = self.device();
        sh(&format!("sync {0}; sha256sum < {0}", device.display())).await
    }

    pub(crate) fn stage_request(&self, capability: &VolumeCapability) -> NodeStageVolumeRequest {
        NodeStageVolumeRequest {
            volume_id: self.volume(),
            staging_target_path: self.text("staging"),
            volume_capability: Some(capability.clone()),
            ..Default::default()
        }
    }

    pub(crate) async fn stage(&self, capability: &VolumeCapability) -> Result<(), Status> {
        self.stage_within(AMPLE, capability).await
    }

    pub(crate) async fn stage_within(
        &self,
        time: Duration,
        capability: &VolumeCapability,
    ) -> Result<(), Status> {
        let mut request = Request::new(self.stage_request(capability));
        request.set_timeout(time);
        self.service.node_stage_volume(request).await.map(drop)
    }

    pub(crate) async fn publish(
        &self,
        capability: &VolumeCapability,
        target: &str,
        readonly: bool,
    ) -> Result<(), Status> {
        let request = NodePublishVolumeRequest {
            volume_id: self.volume(),
            staging_target_path: self.text("staging"),
            target_path: self.text(target),
            volume_capability: Some(capability.clone()),
            readonly,
            ..Default::default()
        };
        let answer = self.service.node_publish_volume(Request::new(request));
        answer.await.map(drop)
    }

    pub(crate) async fn unpublish(&self, target: &str) -> Result<(), Status> {
        self.unpublish_within(AMPLE, target).await
    }

    pub(crate) async fn unpublish_within(
        &self,
        time: Duration,
        target: &str,
    ) -> Result<(), Status> {
        let mut request = Request::new(NodeUnpublishVolumeRequest {
            volume_id: self.volume(),
            target_path: self.text(target),
        });
        request.set_timeout(time);
        let answer = self.service.node_unpublish_volume(request);
        answer.await.map(drop)
    }

    pub(crate) async fn unstage(&self) -> Result<(), Status> {
        self.unstage_within(AMPLE).await
    }

    pub(crate) async fn unstage_within(&self, time: Duration) -> Result<(), Status> {
        let mut request = Request::new(NodeUnstageVolumeRequest {
            volume_id: self.volume(),
            staging_target_path: self.text("staging"),
        });
        request.set_timeout(time);
        let answer = self.service.node_unstage_volume(request);
        answer.await.map(drop)
    }

    pub(crate) async fn expand(&self, path: &str, required: u64) -> Result<i64, Status> {
        self.expand_within(AMPLE, path, required).await
    }

    pub(crate) async fn expand_within(
        &self,
        time: Duration,
        path: &str,
        required: u64,
    ) -> Result<i64, Status> {
        let mut request = Request::new(NodeExpandVolumeRequest {
            volume_id: self.volume(),
            volume_path: self.text(path),
            capacity_range: Some(CapacityRange {
                required_bytes: i64::try_from(required).unwrap(),
                limit_bytes: 0,
            }),
            ..Default::default()
        });
        request.set_timeout(time);
        let answer = self.service.node_expand_volume(request).await?;
        Ok(answer.into_inner().capacity_bytes)
    }

    /// Total bytes as statistics tell them.
    pub(crate) async fn total(&self, path: &str) -> Result<u64, Status> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: self.volume(),
            volume_path: self.text(path),
            ..Default::default()
        };
        let answer = self.service.node_get_volume_stats(Request::new(request));
        Ok(u64::try_from(answer.await?.into_inner().usage[0].total).unwrap())
    }

    pub(crate) async fn grow_device(&self, size: u64) {
        let image = fs::OpenOptions::new().write(true).open(self.image());
        image.unwrap().set_len(size).unwrap();
        sh(&format!("losetup -c {}", self.device().display())).await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        clean_up(self.dir.path());
    }
}

pub(crate) fn mount_capability(fs_type: &str, mode: Mode) -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: fs_type.to_owned(),
            ..Default::default()
        })),
        access_mode: Some(AccessMode { mode: mode.into() }),
    }
}

pub(crate) fn writer(fs_type: &str) -> VolumeCapability {
    mount_capability(fs_type, Mode::SingleNodeWriter)
}

pub(crate) fn block() -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Block(BlockVolume {})),
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
    }
}

/// The same with these mount flags.
pub(crate) fn with_flags(mut capability: VolumeCapability, flags: &[&str]) -> VolumeCapability {
    if let Some(AccessType::Mount(mount)) = &mut capability.access_type {
        mount.mount_flags = flags.iter().map(|&flag| flag.to_owned()).collect();
    }
    capability
}

/// The options of the mount at a path.
pub(crate) fn options(path: &Path) -> Vec<String> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut lines = table
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let found = lines.rfind(|line| Some(line[4]) == path.to_str());
    found.unwrap()[5].split(',').map(str::to_owned).collect()
}

pub(crate) fn is_mounted(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table
        .lines()
        .any(|line| line.split(' ').nth(4) == path.to_str())
}
