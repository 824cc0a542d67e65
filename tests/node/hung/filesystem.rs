//! A filesystem and a device that do not respond block one thread, and nothing else.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::linux::{Device, DeviceNumber, Host, HostError, Linux, Mount, ProcessExec, Roots};
use diskplugin::model::Bytes;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

use crate::common::disk::SIZE;
use crate::common::shell::can_run;

fn long_deadline() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// A mounted FUSE filesystem without a server: system calls on it block.
struct HungMount {
    dir: tempfile::TempDir,
    /// Closing it unblocks all system calls.
    server: Option<fs::File>,
}

impl HungMount {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").unwrap();
        let fd = server.as_raw_fd();
        let options = format!("fd={fd},rootmode=40000,user_id=0,group_id=0");
        let (source, kind) = (Some("hung"), Some("fuse"));
        mount(source, dir.path(), kind, MsFlags::empty(), Some(options.as_str())).unwrap();
        Self {
            dir,
            server: Some(server),
        }
    }
}

impl Drop for HungMount {
    fn drop(&mut self) {
        drop(self.server.take());
        // Best effort: the test may have failed.
        let _ = umount2(self.dir.path(), MntFlags::MNT_DETACH);
    }
}

fn device_and_mount(minor: u64, point: &Path) -> (Device, Mount) {
    let number = DeviceNumber { major: 7000, minor };
    let device = Device {
        name: "none".to_owned(),
        path: "/dev/null".into(),
        number,
        sequence: None,
        size: Bytes(SIZE),
        model: None,
        serial_pending: false,
        serial: None,
        backing_file: None,
        read_only: false,
        partitions: Vec::new(),
        holders: Vec::new(),
        partition_of: None,
    };
    let mount = Mount {
        is_of_dev: false,
        is_shared: false,
        number,
        root: "/".into(),
        point: point.to_owned(),
        options: "rw".to_owned(),
        kind: "fuse".to_owned(),
        source: "hung".into(),
        super_options: "rw".to_owned(),
    };
    (device, mount)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hung_filesystem_blocks_one_thread_only() {
    if !can_run("node::hung", "test -c /dev/fuse").await {
        return;
    }
    let host = Linux::new(Arc::new(ProcessExec), Roots::default());
    let mut hung = HungMount::new();
    let (device, mount) = device_and_mount(1, hung.dir.path());
    let short = Deadline::after(Duration::from_millis(300));
    let late = host.vitals(short, &device, &mount).await;
    assert!(matches!(late, Err(HostError::TimedOut { .. })), "{late:?}");
    for _ in 0..20 {
        // A second system call would time out instead.
        let again = host.vitals(long_deadline(), &device, &mount).await;
        assert!(matches!(again, Err(HostError::StillRunning { .. })), "{again:?}");
    }
    let (other, other_mount) = device_and_mount(2, Path::new("/"));
    assert!(
        host.vitals(long_deadline(), &other, &other_mount)
            .await
            .unwrap()
            .usage
            .is_ok()
    );
    drop(hung.server.take());
    let mut interval = tokio::time::interval(Duration::from_millis(10));
    let until = long_deadline();
    loop {
        interval.tick().await;
        match host.vitals(long_deadline(), &device, &mount).await {
            Err(HostError::StillRunning { .. }) if !until.has_passed() => {}
            // The filesystem responds again, with an error that it is dead.
            Ok(vitals) => break assert!(vitals.usage.unwrap_err().is_io_failure()),
            Err(error) => panic!("{error}"),
        }
    }
}

/// The statistics show whether a disk responds, so that they must not wait for a call that waits for the disk.
#[tokio::test(flavor = "multi_thread")]
async fn statistics_are_read_while_a_read_of_the_device_hangs() {
    let host = Linux::new(Arc::new(ProcessExec), Roots::default());
    let dir = tempfile::tempdir().unwrap();
    let (mut device, _) = device_and_mount(7, dir.path());
    // A pipe without a writer: opening it does not return.
    device.path = dir.path().join("pipe");
    nix::unistd::mkfifo(&device.path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let short = Deadline::after(Duration::from_millis(300));
    let late = host.superblocks(short, &device).await;
    let read = host.block_setting(long_deadline(), &device, "stat").await;
    // The hung call returns before the assertions: the runtime waits for its thread.
    let writer = fs::OpenOptions::new().write(true).open(&device.path);
    drop(writer.unwrap());
    assert!(matches!(late, Err(HostError::TimedOut { .. })), "{late:?}");
    assert!(read.is_ok(), "{read:?}");
}
