//! A disk that does not respond: its system calls block in the kernel and cannot be canceled. Calls for other volumes
//! and restarts of the node plugin must not be affected.

mod disk;
mod lives;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::volume_health::VolumeHealthEntry;
use diskplugin::csi::proto::{
    NodeGetVolumeHealthRequest, NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, NodePublishVolumeRequest,
    NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
};
use nix::sys::signal::Signal;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::common::csi::{capability, endpoint, within};
use crate::common::failure_table::{FailureRow, Observed};
use crate::common::machine::{TestDir, has_devices};
use crate::common::process::Process;
use crate::common::wait::until;
use disk::{Disk, ExportedImage, FreezableFilesystem};

/// Timeout of calls that must not block.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);
/// Timeout of calls that block. The driver responds 250 ms before it.
const SHORT_TIMEOUT: Duration = Duration::from_secs(1);
/// Codes of calls that block: the plugin's, `ABORTED` while an earlier call runs, and the client's own `CANCELLED` if
/// the plugin on a busy machine responds too late.
const BLOCKED: [Code; 3] = [Code::DeadlineExceeded, Code::Aborted, Code::Cancelled];
/// The number of retries by kubelet.
const RETRIES: usize = 12;

/// A node plugin process.
struct Plugin {
    process: Process,
    channel: Channel,
}

impl Plugin {
    async fn start(home: &TestDir) -> Self {
        let socket = home.path().join("csi.sock");
        let devices = format!("--device-dir={}", home.path().join("devices").display());
        let state = format!("--state-dir={}", home.path().join("state").display());
        let kubelet = format!("--kubelet-dir={}", home.path().display());
        let start = home.diskplugin(&[
            "node",
            "--node-id=i-hung",
            "--region=cn-beijing",
            "--zone=cn-beijing-c",
            "--drain-timeout=1s",
            &devices,
            &state,
            &kubelet,
            &endpoint(&socket),
        ]);
        let start = start.env("DISKPLUGIN_KUBELET_DIR", home.path());
        let (process, channel) = start.ready(&socket).await;
        Self { process, channel }
    }

    fn thread_count(&self) -> usize {
        let tasks = format!("/proc/{}/task", self.process.pid());
        fs::read_dir(tasks).unwrap().count()
    }

    fn node(&self) -> NodeClient<Channel> {
        NodeClient::new(self.channel.clone())
    }

    async fn stage(&self, disk: &Disk, time: Duration) -> Result<(), Status> {
        let request = NodeStageVolumeRequest {
            volume_id: disk.volume(),
            staging_target_path: text(&disk.path("staging")),
            volume_capability: Some(capability()),
            ..NodeStageVolumeRequest::default()
        };
        self.node().node_stage_volume(within(time, request)).await.map(drop)
    }

    async fn publish(&self, disk: &Disk) -> Result<(), Status> {
        self.publish_at(disk, "target").await
    }

    async fn publish_at(&self, disk: &Disk, target: &str) -> Result<(), Status> {
        let request = NodePublishVolumeRequest {
            volume_id: disk.volume(),
            staging_target_path: text(&disk.path("staging")),
            target_path: text(&disk.path(target)),
            volume_capability: Some(capability()),
            ..NodePublishVolumeRequest::default()
        };
        self.node()
            .node_publish_volume(within(LONG_TIMEOUT, request))
            .await
            .map(drop)
    }

    async fn unpublish(&self, disk: &Disk) -> Result<(), Status> {
        self.unpublish_at(disk, "target").await
    }

    async fn unpublish_at(&self, disk: &Disk, target: &str) -> Result<(), Status> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: disk.volume(),
            target_path: text(&disk.path(target)),
        };
        self.node()
            .node_unpublish_volume(within(LONG_TIMEOUT, request))
            .await
            .map(drop)
    }

    async fn unstage(&self, disk: &Disk, time: Duration) -> Result<(), Status> {
        let request = NodeUnstageVolumeRequest {
            volume_id: disk.volume(),
            staging_target_path: text(&disk.path("staging")),
        };
        self.node().node_unstage_volume(within(time, request)).await.map(drop)
    }

    async fn stats(&self, disk: &Disk, time: Duration) -> Result<NodeGetVolumeStatsResponse, Status> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: disk.volume(),
            volume_path: text(&disk.path("target")),
            ..NodeGetVolumeStatsRequest::default()
        };
        self.node()
            .node_get_volume_stats(within(time, request))
            .await
            .map(Response::into_inner)
    }

    async fn health(&self, disk: &Disk) -> Vec<VolumeHealthEntry> {
        let request = NodeGetVolumeHealthRequest {
            volume_id: disk.volume(),
            volume_publish_path: text(&disk.path("target")),
            staging_target_path: text(&disk.path("staging")),
        };
        let response = self
            .node()
            .node_get_volume_health(within(LONG_TIMEOUT, request))
            .await
            .unwrap();
        let health = response.into_inner().volume_health;
        health.unwrap().health_statuses
    }

    /// Runs the lifecycle of a volume, which a hung disk must not delay.
    async fn run_lifecycle(&self, disk: &Disk) {
        self.stage(disk, LONG_TIMEOUT).await.unwrap();
        self.publish(disk).await.unwrap();
        self.stats(disk, LONG_TIMEOUT).await.unwrap();
        fs::write(disk.path("target").join("file"), "x").unwrap();
        self.unpublish(disk).await.unwrap();
        self.unstage(disk, LONG_TIMEOUT).await.unwrap();
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn home() -> TestDir {
    let home = TestDir::new();
    for name in ["devices", "disks", "kubelet"] {
        fs::create_dir(home.path().join(name)).unwrap();
    }
    home
}

fn disk_dir(home: &TestDir) -> PathBuf {
    home.path().join("disks")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_unmount_blocks_only_its_volume_and_no_restart() {
    if !has_devices("node::hung").await {
        return;
    }
    let home = home();
    let frozen = FreezableFilesystem::new(&home).await;
    let hung = Disk::new(&home, &frozen.directory(), "hungunmount").await;
    let other = Disk::new(&home, &disk_dir(&home), "hungother").await;
    let plugin = Plugin::start(&home).await;
    plugin.stage(&hung, LONG_TIMEOUT).await.unwrap();
    plugin.publish(&hung).await.unwrap();
    fs::write(hung.path("target").join("file"), "kept").unwrap();
    plugin.run_lifecycle(&other).await;
    plugin.unpublish(&hung).await.unwrap();

    frozen.freeze().await;
    plugin.unstage(&hung, SHORT_TIMEOUT).await.unwrap_err();
    let before = plugin.thread_count();
    for _ in 0..RETRIES {
        plugin.unstage(&hung, SHORT_TIMEOUT).await.unwrap_err();
        plugin.stage(&hung, SHORT_TIMEOUT).await.unwrap_err();
    }
    plugin.run_lifecycle(&other).await;
    plugin.stage(&other, LONG_TIMEOUT).await.unwrap();
    let grown = plugin.thread_count().saturating_sub(before);
    assert!(grown < RETRIES / 2, "{grown} more threads after {RETRIES} retries");

    // The blocked system call keeps the old process; a new one serves the socket.
    plugin.process.signal(Signal::SIGTERM);
    let socket = home.path().join("csi.sock");
    until("the socket is free", LONG_TIMEOUT, async || {
        (!socket.exists()).then_some(())
    })
    .await;
    let second = Plugin::start(&home).await;
    second.stage(&other, LONG_TIMEOUT).await.unwrap();
    second.unstage(&other, LONG_TIMEOUT).await.unwrap();
    second.run_lifecycle(&other).await;

    frozen.thaw().await;
    let ended = plugin.process.ended().await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("still running"), "{}", ended.stderr);
    second.unstage(&hung, LONG_TIMEOUT).await.unwrap();
    second.stage(&hung, LONG_TIMEOUT).await.unwrap();
    let kept = fs::read_to_string(hung.path("staging").join("file"));
    assert_eq!(kept.unwrap(), "kept");
    second.unstage(&hung, LONG_TIMEOUT).await.unwrap();
    second.process.signal(Signal::SIGTERM);
    assert_eq!(second.process.ended().await.code, Some(0));
    for disk in [&hung, &other] {
        disk.detach().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_for_a_hung_disk_do_not_add_threads() {
    if !has_devices("node::hung").await || !ExportedImage::is_supported().await {
        return;
    }
    let home = home();
    let export = ExportedImage::new(&home, "hungread").await;
    let hung = export.disk(&home).await;
    let other = Disk::new(&home, &disk_dir(&home), "hungreadother").await;
    let plugin = Plugin::start(&home).await;
    plugin.run_lifecycle(&other).await;

    export.stop();
    until(
        "the plugin reports that the deadline has passed",
        LONG_TIMEOUT,
        async || {
            let error = plugin.stage(&hung, SHORT_TIMEOUT).await.unwrap_err();
            assert!(BLOCKED.contains(&error.code()), "{error}");
            (error.code() == Code::DeadlineExceeded).then_some(())
        },
    )
    .await;
    plugin.run_lifecycle(&other).await;
    let before = plugin.thread_count();
    for _ in 0..RETRIES {
        let error = plugin.stage(&hung, SHORT_TIMEOUT).await.unwrap_err();
        assert!(BLOCKED.contains(&error.code()), "{error}");
    }
    let grown = plugin.thread_count().saturating_sub(before);
    assert!(grown < RETRIES / 2, "{grown} more threads after {RETRIES} retries");
    plugin.run_lifecycle(&other).await;

    export.resume();
    until("the disk is staged", LONG_TIMEOUT, async || {
        plugin.stage(&hung, LONG_TIMEOUT).await.ok()
    })
    .await;
    plugin.unstage(&hung, LONG_TIMEOUT).await.unwrap();
    plugin.process.signal(Signal::SIGTERM);
    assert_eq!(plugin.process.ended().await.code, Some(0));
    for disk in [&hung, &other] {
        disk.detach().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_disk_in_use_looks_as_documented() {
    if !has_devices("node::hung").await || !ExportedImage::is_supported().await {
        return;
    }
    let row = FailureRow::of("hung disk");
    let home = home();
    let export = ExportedImage::new(&home, "hunginuse").await;
    let hung = export.disk(&home).await;
    let plugin = Plugin::start(&home).await;
    plugin.stage(&hung, LONG_TIMEOUT).await.unwrap();
    plugin.publish(&hung).await.unwrap();
    // kubelet repeats these calls, so that the kernel has cached the data that they read.
    for _ in 0..2 {
        plugin.stats(&hung, LONG_TIMEOUT).await.unwrap();
        assert_eq!(plugin.health(&hung).await, []);
    }
    fs::write(hung.path("target").join("file"), "kept").unwrap();

    export.drop_file_cache(&hung.path("target")).await;
    export.stop();
    let reader = hung.read_directly().await;
    let health = plugin.health(&hung).await;
    let stats = plugin.stats(&hung, LONG_TIMEOUT).await.unwrap();
    let publish = plugin.publish_at(&hung, "second").await;
    for target in ["second", "target"] {
        plugin.unpublish_at(&hung, target).await.unwrap();
    }
    let unstage = until("the disk counts as hung", LONG_TIMEOUT, async || {
        let error = plugin.unstage(&hung, SHORT_TIMEOUT).await.unwrap_err();
        let is_repeated = [Code::Aborted, Code::Cancelled].contains(&error.code());
        (!is_repeated).then_some(Err(error))
    })
    .await;
    export.resume();
    assert_eq!(reader.ended().await.code, Some(0));
    row.check(&Observed {
        publish,
        unstage,
        health,
        stats,
    });

    until("the disk is unstaged", LONG_TIMEOUT, async || {
        plugin.unstage(&hung, LONG_TIMEOUT).await.ok()
    })
    .await;
    plugin.stage(&hung, LONG_TIMEOUT).await.unwrap();
    let kept = fs::read_to_string(hung.path("staging").join("file"));
    assert_eq!(kept.unwrap(), "kept");
    plugin.unstage(&hung, LONG_TIMEOUT).await.unwrap();
    plugin.process.signal(Signal::SIGTERM);
    assert_eq!(plugin.process.ended().await.code, Some(0));
    hung.detach().await;
}
