//! A node with one attached disk.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use diskplugin::base::Deadline;
use diskplugin::csi::node::Service;
use diskplugin::csi::proto::node_server::Node as _;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::volume_health::VolumeHealthEntry;
use diskplugin::csi::proto::{
    CapacityRange, NodeExpandVolumeRequest, NodeGetVolumeHealthRequest, NodeGetVolumeStatsRequest,
    NodeGetVolumeStatsResponse, NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest,
    NodeUnstageVolumeRequest, VolumeCapability,
};
use diskplugin::linux::{Command, Exec, ExecError, Output, ProcessExec};
use tonic::{Request, Status};

use crate::common::csi::within;
pub(crate) use crate::common::shell::sh;
pub(crate) use crate::disk::{Disk, MIB, SIZE};
pub(crate) use crate::mounts::is_mounted;
use crate::mounts::mounts;

/// Timeout of calls that must complete, also on a busy machine.
pub(crate) const LONG_TIMEOUT: Duration = Duration::from_secs(60);

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

/// A node with one disk.
pub(crate) struct World {
    disk: Disk,
    pub(crate) exec: Arc<RecordingExec>,
    pub(crate) service: Service,
}

impl Deref for World {
    type Target = Disk;

    fn deref(&self) -> &Disk {
        &self.disk
    }
}

impl World {
    /// Creates and attaches a blank disk. Returns `None` and prints the reason if this machine cannot run these tests.
    pub(crate) async fn new() -> Option<Self> {
        let world = Self::without_device().await?;
        world.attach().await;
        Some(world)
    }

    pub(crate) async fn without_device() -> Option<Self> {
        static CREATED: AtomicU32 = AtomicU32::new(0);
        let tools = "command -v mkfs.ext4 mkfs.xfs mkfs.btrfs sfdisk";
        if !crate::common::shell::can_run("node::service", tools).await {
            return None;
        }
        let disk = Disk::new(&format!("nodeloop{}", CREATED.fetch_add(1, Ordering::Relaxed)), SIZE);
        let exec = Arc::new(RecordingExec::default());
        let service = Service::new(disk.node(Arc::clone(&exec) as _, Arc::clone(&exec) as _));
        Some(Self { disk, exec, service })
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Attaches the disk to a loop device with a reserved number. An unplugged device is free for a moment, and
    /// `losetup -f` returns the free device with the lowest number, so another test would use a low number.
    pub(crate) async fn attach_reserved(&self) {
        const RESERVED: u32 = 4096;
        let device = format!("/dev/loop{}", RESERVED + std::process::id() % RESERVED);
        let image = self.image().display().to_string();
        sh(&format!("losetup -f; losetup {device} {image}")).await;
        symlink(&device, self.link()).unwrap();
    }

    /// Detaches a disk that is mounted: the kernel removes its device with the last use.
    pub(crate) async fn force_detach(&self) {
        sh(&format!("losetup -d {}", self.device())).await;
        fs::remove_file(self.link()).unwrap();
    }

    /// Detaches a disk of which only the device node is in use: the kernel removes its device immediately. Requires
    /// `attach_reserved`.
    pub(crate) async fn unplug(&self) {
        let unplug = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node/service/unplug");
        sh(&format!("losetup -f; '{unplug}' {}", self.device())).await;
        fs::remove_file(self.link()).unwrap();
    }

    pub(crate) fn volume(&self) -> String {
        format!("d-{}", self.serial)
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
        self.stage_within(LONG_TIMEOUT, capability).await
    }

    pub(crate) async fn stage_within(&self, time: Duration, capability: &VolumeCapability) -> Result<(), Status> {
        let request = within(time, self.stage_request(capability));
        self.service.node_stage_volume(request).await.map(drop)
    }

    pub(crate) async fn publish(
        &self,
        capability: &VolumeCapability,
        target: &str,
        readonly: bool,
    ) -> Result<(), Status> {
        self.publish_within(LONG_TIMEOUT, capability, target, readonly).await
    }

    pub(crate) async fn publish_within(
        &self,
        time: Duration,
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
        let response = self.service.node_publish_volume(within(time, request));
        response.await.map(drop)
    }

    pub(crate) async fn unpublish(&self, target: &str) -> Result<(), Status> {
        self.unpublish_within(LONG_TIMEOUT, target).await
    }

    pub(crate) async fn unpublish_within(&self, time: Duration, target: &str) -> Result<(), Status> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: self.volume(),
            target_path: self.text(target),
        };
        let response = self.service.node_unpublish_volume(within(time, request));
        response.await.map(drop)
    }

    pub(crate) async fn unstage(&self) -> Result<(), Status> {
        self.unstage_within(LONG_TIMEOUT).await
    }

    pub(crate) async fn unstage_within(&self, time: Duration) -> Result<(), Status> {
        let request = NodeUnstageVolumeRequest {
            volume_id: self.volume(),
            staging_target_path: self.text("staging"),
        };
        let response = self.service.node_unstage_volume(within(time, request));
        response.await.map(drop)
    }

    pub(crate) async fn expand(&self, path: &str, required: u64) -> Result<i64, Status> {
        self.expand_within(LONG_TIMEOUT, path, required).await
    }

    pub(crate) async fn expand_within(&self, time: Duration, path: &str, required: u64) -> Result<i64, Status> {
        let request = NodeExpandVolumeRequest {
            volume_id: self.volume(),
            volume_path: self.text(path),
            capacity_range: Some(CapacityRange {
                required_bytes: i64::try_from(required).unwrap(),
                limit_bytes: 0,
            }),
            ..Default::default()
        };
        let response = self.service.node_expand_volume(within(time, request)).await?;
        Ok(response.into_inner().capacity_bytes)
    }

    pub(crate) async fn stats(&self, path: &str) -> Result<NodeGetVolumeStatsResponse, Status> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: self.volume(),
            volume_path: self.text(path),
            ..Default::default()
        };
        let response = self.service.node_get_volume_stats(Request::new(request));
        Ok(response.await?.into_inner())
    }

    /// Returns the total bytes that the volume statistics report.
    pub(crate) async fn total_bytes(&self, path: &str) -> Result<u64, Status> {
        Ok(u64::try_from(self.stats(path).await?.usage[0].total).unwrap())
    }

    /// The health issues that are reported for the volume at a path.
    pub(crate) async fn health(&self, path: &str) -> Result<Vec<VolumeHealthEntry>, Status> {
        let request = NodeGetVolumeHealthRequest {
            volume_id: self.volume(),
            volume_publish_path: self.text(path),
            staging_target_path: self.text("staging"),
        };
        let response = self.service.node_get_volume_health(Request::new(request));
        let health = response.await?.into_inner().volume_health;
        Ok(health.unwrap().health_statuses)
    }

    pub(crate) async fn grow_device(&self, size: u64) {
        let image = fs::OpenOptions::new().write(true).open(self.image());
        image.unwrap().set_len(size).unwrap();
        sh(&format!("losetup -c {}", self.device())).await;
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

pub(crate) fn writer_capability(fs_type: &str) -> VolumeCapability {
    mount_capability(fs_type, Mode::SingleNodeWriter)
}

pub(crate) fn block_capability() -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Block(BlockVolume {})),
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
    }
}

pub(crate) fn with_flags(mut capability: VolumeCapability, flags: &[&str]) -> VolumeCapability {
    if let Some(AccessType::Mount(mount)) = &mut capability.access_type {
        mount.mount_flags = flags.iter().map(|&flag| flag.to_owned()).collect();
    }
    capability
}

/// The options of the mount at a path.
pub(crate) fn mount_options(path: &Path) -> Vec<String> {
    let found = mounts(path).into_iter().rfind(|line| line.point == path);
    found.unwrap().options.split(',').map(str::to_owned).collect()
}
