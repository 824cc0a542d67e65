//! A disk that does not respond: its system calls block in the kernel and cannot be canceled. Calls for other volumes
//! and restarts of the node plugin must not be affected.

mod disk;
mod filesystem;
mod lives;

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::Signal;
use tonic::Code;
use tonic::transport::Channel;

use crate::common::csi::filesystem;
use crate::common::disk::{Disk, MIB};
use crate::common::failure_table::{FailureRow, Observed};
use crate::common::machine::{TestDir, has_devices};
use crate::common::process::Process;
use crate::common::volume::{LONG_TIMEOUT, NodePort, NodeVolume};
use crate::common::wait::until;
use disk::{ExportedImage, FreezableFilesystem, read_directly};

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
        let start = home.diskplugin(home.node_args("i-hung", &socket));
        let start = start.args(["--drain-timeout=1s"]);
        let start = start.env("DISKPLUGIN_KUBELET_DIR", home.path());
        let (process, channel) = start.ready(&socket).await;
        Self { process, channel }
    }

    /// Sends SIGTERM, after which it must succeed.
    async fn stop(self) {
        self.process.signal(Signal::SIGTERM);
        assert_eq!(self.process.ended().await.code, Some(0));
    }

    fn thread_count(&self) -> usize {
        let tasks = format!("/proc/{}/task", self.process.pid());
        fs::read_dir(tasks).unwrap().count()
    }

    /// Asserts that kubelet's retries do not add threads.
    async fn assert_few_threads_added(&self, retry: impl AsyncFn()) {
        let before = self.thread_count();
        for _ in 0..RETRIES {
            retry().await;
        }
        let grown = self.thread_count().saturating_sub(before);
        assert!(grown < RETRIES / 2, "{grown} more threads after {RETRIES} retries");
    }

    fn volume(&self, disk: &Disk) -> NodeVolume {
        let port = NodePort::Socket(self.channel.clone());
        NodeVolume::new(port, disk.volume(), &disk.path(""), Some(filesystem("ext4")))
    }
}

/// Runs the lifecycle of a volume, which a hung disk must not delay.
async fn run_lifecycle(volume: &NodeVolume) {
    volume.stage().await.unwrap();
    volume.publish().await.unwrap();
    volume.stats().await.unwrap();
    fs::write(Path::new(&volume.target).join("file"), "x").unwrap();
    volume.unpublish().await.unwrap();
    volume.unstage().await.unwrap();
}

/// Stages the volume, which has kept its data, and unstages it.
async fn assert_kept(volume: &NodeVolume) {
    volume.stage().await.unwrap();
    let kept = fs::read_to_string(Path::new(&volume.staging).join("file"));
    assert_eq!(kept.unwrap(), "kept");
    volume.unstage().await.unwrap();
}

/// Creates and attaches a disk with its image in this directory.
async fn attached(home: &TestDir, directory: &Path, serial: &str) -> Disk {
    let disk = Disk::create(home.path(), directory.join(format!("{serial}.img")), 16 * MIB);
    disk.attach().await;
    disk
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_unmount_blocks_only_its_volume_and_no_restart() {
    if !has_devices("node::hung").await {
        return;
    }
    let home = TestDir::of_node();
    let frozen = FreezableFilesystem::new(&home).await;
    let disks = [
        attached(&home, &frozen.directory, "hungunmount").await,
        attached(&home, &home.path().join("disks"), "hungother").await,
    ];
    let plugin = Plugin::start(&home).await;
    let [hung, other] = disks.each_ref().map(|disk| plugin.volume(disk));
    hung.stage().await.unwrap();
    hung.publish().await.unwrap();
    fs::write(Path::new(&hung.target).join("file"), "kept").unwrap();
    run_lifecycle(&other).await;
    hung.unpublish().await.unwrap();

    frozen.freeze().await;
    let blocked = hung.within(SHORT_TIMEOUT);
    blocked.unstage().await.unwrap_err();
    let retry = async || {
        blocked.unstage().await.unwrap_err();
        blocked.stage().await.unwrap_err();
    };
    plugin.assert_few_threads_added(retry).await;
    run_lifecycle(&other).await;
    other.stage().await.unwrap();

    // The blocked system call keeps the old process; a new one serves the socket.
    plugin.process.signal(Signal::SIGTERM);
    let socket = home.path().join("csi.sock");
    until("the socket is free", LONG_TIMEOUT, async || {
        (!socket.exists()).then_some(())
    })
    .await;
    let second = Plugin::start(&home).await;
    let [hung, other] = disks.each_ref().map(|disk| second.volume(disk));
    other.stage().await.unwrap();
    other.unstage().await.unwrap();
    run_lifecycle(&other).await;

    frozen.thaw().await;
    let ended = plugin.process.ended().await;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("still running"), "{}", ended.stderr);
    hung.unstage().await.unwrap();
    assert_kept(&hung).await;
    second.stop().await;
    for disk in disks {
        disk.detach().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_for_a_hung_disk_do_not_add_threads() {
    if !has_devices("node::hung").await || !ExportedImage::is_supported().await {
        return;
    }
    let home = TestDir::of_node();
    let export = ExportedImage::new(&home, "hungread").await;
    let disks = [
        export.disk(&home).await,
        attached(&home, &home.path().join("disks"), "hungreadother").await,
    ];
    let plugin = Plugin::start(&home).await;
    let [hung, other] = disks.each_ref().map(|disk| plugin.volume(disk));
    run_lifecycle(&other).await;

    export.stop();
    let stage = async || {
        let error = hung.within(SHORT_TIMEOUT).stage().await.unwrap_err();
        assert!(BLOCKED.contains(&error.code()), "{error}");
        error
    };
    until("the plugin reports a passed deadline", LONG_TIMEOUT, async || {
        (stage().await.code() == Code::DeadlineExceeded).then_some(())
    })
    .await;
    run_lifecycle(&other).await;
    plugin.assert_few_threads_added(async || drop(stage().await)).await;
    run_lifecycle(&other).await;

    export.resume();
    until("the disk is staged", LONG_TIMEOUT, async || hung.stage().await.ok()).await;
    hung.unstage().await.unwrap();
    plugin.stop().await;
    for disk in disks {
        disk.detach().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hung_disk_in_use_looks_as_documented() {
    if !has_devices("node::hung").await || !ExportedImage::is_supported().await {
        return;
    }
    let row = FailureRow::of("hung disk");
    let home = TestDir::of_node();
    let export = ExportedImage::new(&home, "hunginuse").await;
    let disk = export.disk(&home).await;
    let plugin = Plugin::start(&home).await;
    let hung = plugin.volume(&disk);
    hung.stage().await.unwrap();
    hung.publish().await.unwrap();
    // kubelet repeats these calls, so that the kernel has cached the data that they read.
    for _ in 0..2 {
        hung.stats().await.unwrap();
        assert_eq!(hung.health().await.unwrap(), []);
    }
    fs::write(Path::new(&hung.target).join("file"), "kept").unwrap();

    export.drop_file_cache(&hung.target).await;
    export.stop();
    let reader = read_directly(&disk).await;
    let health = hung.health().await.unwrap();
    let stats = hung.stats().await.unwrap();
    let second = hung.at("second");
    let publish = second.publish().await;
    for volume in [&second, &hung] {
        volume.unpublish().await.unwrap();
    }
    let unstage = until("the disk counts as hung", LONG_TIMEOUT, async || {
        let error = hung.within(SHORT_TIMEOUT).unstage().await.unwrap_err();
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

    until("the disk is unstaged", LONG_TIMEOUT, async || hung.unstage().await.ok()).await;
    assert_kept(&hung).await;
    plugin.stop().await;
    disk.detach().await;
}
