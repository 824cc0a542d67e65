//! A disk that answers nothing any more: its calls hang in the kernel, where nothing can take them back.
//! Everybody else's go on, and a node plugin ends and starts as ever.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(
    dead_code,
    reason = "each file of tests uses its own part of the harness"
)]
mod common;
mod disk;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::{
    NodeGetVolumeStatsRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
    NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
};
use nix::sys::signal::Signal;
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use common::csi::{capability, endpoint};
use common::machine::{TestDir, has_devices};
use common::process::Process;
use common::wait::until;
use disk::{Disk, Export, Frozen};

/// Longer than anything takes that must not hang.
const AMPLE: Duration = Duration::from_secs(60);
/// How long a caller waits for what hangs; the driver answers a quarter of a second before that.
const BRIEF: Duration = Duration::from_secs(1);
/// How often kubelet comes again.
const RETRIES: usize = 12;

/// The plugin as a process.
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

    /// How many threads it has.
    fn threads(&self) -> usize {
        let tasks = format!("/proc/{}/task", self.process.pid());
        fs::read_dir(tasks).unwrap().count()
    }

    fn node(&self) -> NodeClient<Channel> {
        NodeClient::new(self.channel.clone())
    }

    async fn stage(&self, disk: &Disk, time: Duration) -> Result<(), Status> {
        let request = NodeStageVolumeRequest {
            volume_id: disk.volume(),
            staging_target_path: text(&disk.place("staging")),
            volume_capability: Some(capability()),
            ..NodeStageVolumeRequest::default()
        };
        self.node()
            .node_stage_volume(timed(request, time))
            .await
            .map(drop)
    }

    async fn publish(&self, disk: &Disk) -> Result<(), Status> {
        let request = NodePublishVolumeRequest {
            volume_id: disk.volume(),
            staging_target_path: text(&disk.place("staging")),
            target_path: text(&disk.place("target")),
            volume_capability: Some(capability()),
            ..NodePublishVolumeRequest::default()
        };
        self.node()
            .node_publish_volume(timed(request, AMPLE))
            .await
            .map(drop)
    }

    async fn unpublish(&self, disk: &Disk) -> Result<(), Status> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: disk.volume(),
            target_path: text(&disk.place("target")),
        };
        self.node()
            .node_unpublish_volume(timed(request, AMPLE))
            .await
            .map(drop)
    }

    async fn unstage(&self, disk: &Disk, time: Duration) -> Result<(), Status> {
        let request = NodeUnstageVolumeRequest {
            volume_id: disk.volume(),
            staging_target_path: text(&disk.place("staging")),
        };
        self.node()
            .node_unstage_volume(timed(request, time))
            .await
            .map(drop)
    }

    async fn stats(&self, disk: &Disk, time: Duration) -> Result<(), Status> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: disk.volume(),
            volume_path: text(&disk.place("target")),
            ..NodeGetVolumeStatsRequest::default()
        };
        self.node()
            .node_get_volume_stats(timed(request, time))
            .await
            .map(drop)
    }

    /// A whole life of a volume, which no hung disk may hold up.
    async fn lead(&self, disk: &Disk) {
        self.stage(disk, AMPLE).await.unwrap();
        self.publish(disk).await.unwrap();
        self.stats(disk, AMPLE).await.unwrap();
        fs::write(disk.place("target").join("file"), "x").unwrap();
        self.unpublish(disk).await.unwrap();
        self.unstage(disk, AMPLE).await.unwrap();
    }
}

fn timed<T>(message: T, time: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(time);
    request
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

fn disks(home: &TestDir) -> PathBuf {
    home.path().join("disks")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_hangs_in_an_unmount_blocks_only_itself_and_no_restart() {
    if !has_devices("node_hung").await {
        return;
    }
    let home = home();
    let frozen = Frozen::new(&home).await;
    let hung = Disk::new(&home, &frozen.directory(), "hungunmount").await;
    let other = Disk::new(&home, &disks(&home), "hungbeside").await;
    let plugin = Plugin::start(&home).await;
    plugin.stage(&hung, AMPLE).await.unwrap();
    plugin.publish(&hung).await.unwrap();
    fs::write(hung.place("target").join("file"), "kept").unwrap();
    plugin.lead(&other).await;
    plugin.unpublish(&hung).await.unwrap();

    frozen.freeze().await;
    plugin.unstage(&hung, BRIEF).await.unwrap_err();
    let before = plugin.threads();
    for _ in 0..RETRIES {
        plugin.unstage(&hung, BRIEF).await.unwrap_err();
        plugin.stage(&hung, BRIEF).await.unwrap_err();
    }
    plugin.lead(&other).await;
    plugin.stage(&other, AMPLE).await.unwrap();
    let grown = plugin.threads().saturating_sub(before);
    assert!(
        grown < RETRIES / 2,
        "{grown} more threads after {RETRIES} retries"
    );

    // The old one is held by the kernel; a new one serves all the same.
    plugin.process.signal(Signal::SIGTERM);
    let socket = home.path().join("csi.sock");
    until("the socket is free", AMPLE, async || {
        (!socket.exists()).then_some(())
    })
    .await;
    let second = Plugin::start(&home).await;
    second.stage(&other, AMPLE).await.unwrap();
    second.unstage(&other, AMPLE).await.unwrap();
    second.lead(&other).await;

    frozen.thaw().await;
    let ended = plugin.process.ended().await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("still running"), "{}", ended.stderr);
    second.unstage(&hung, AMPLE).await.unwrap();
    second.stage(&hung, AMPLE).await.unwrap();
    let kept = fs::read_to_string(hung.place("staging").join("file"));
    assert_eq!(kept.unwrap(), "kept");
    second.unstage(&hung, AMPLE).await.unwrap();
    second.process.signal(Signal::SIGTERM);
    assert_eq!(second.process.ended().await.code, Some(0));
    for disk in [&hung, &other] {
        disk.detach().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_cannot_be_read_takes_no_thread_for_each_retry() {
    if !has_devices("node_hung").await || !Export::is_possible().await {
        return;
    }
    let home = home();
    let export = Export::new(&home, "hungread").await;
    let hung = export.disk(&home).await;
    let other = Disk::new(&home, &disks(&home), "hungnear").await;
    let plugin = Plugin::start(&home).await;
    plugin.lead(&other).await;

    export.stop();
    let error = plugin.stage(&hung, BRIEF).await.unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    plugin.lead(&other).await;
    let before = plugin.threads();
    for _ in 0..RETRIES {
        let error = plugin.stage(&hung, BRIEF).await.unwrap_err();
        let codes = [Code::DeadlineExceeded, Code::Aborted];
        assert!(codes.contains(&error.code()), "{error}");
    }
    let grown = plugin.threads().saturating_sub(before);
    assert!(
        grown < RETRIES / 2,
        "{grown} more threads after {RETRIES} retries"
    );
    plugin.lead(&other).await;

    export.go_on();
    until("the disk is staged", AMPLE, async || {
        plugin.stage(&hung, AMPLE).await.ok()
    })
    .await;
    plugin.unstage(&hung, AMPLE).await.unwrap();
    plugin.process.signal(Signal::SIGTERM);
    assert_eq!(plugin.process.ended().await.code, Some(0));
    for disk in [&hung, &other] {
        disk.detach().await;
    }
}
