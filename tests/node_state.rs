//! What the node tells of volumes that are not well, on real filesystems: loop devices stand for
//! attached disks, and a FUSE filesystem that nobody serves for one whose device answers no more.
//! Needs root, losetup and the filesystems' tools.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::host::{Device, Exec, Host, HostError, Linux, Mount, Number, Processes, Roots};
use diskplugin::model::{Bytes, Filesystem, Fsck, MountFlags, Tuning};
use diskplugin::node::{
    Access, Error, ExpandRequest, HealthRequest, Node, Settings, StageRequest, StatsRequest,
    UnstageRequest, Volume, VolumeStats, VolumeUsage,
};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use shell::{clean_up, sh};

#[path = "common/shell.rs"]
mod shell;

const MIB: u64 = 1 << 20;

/// xfs wants the most room.
const SIZE: u64 = 320 * MIB;

fn ample() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// Whether this machine can run these tests; aloud when it cannot.
async fn can_run() -> bool {
    let tools = "command -v mkfs.ext4 mkfs.xfs xfs_io && test -c /dev/fuse";
    shell::can_run("node_state", tools).await
}

/// A node with one attached disk. Dropping it takes everything down, also in a panic.
struct World {
    dir: tempfile::TempDir,
    serial: &'static str,
    node: Arc<Node>,
}

impl World {
    /// The serial must differ from test to test.
    async fn new(serial: &'static str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let devices = dir.path().join("devices");
        fs::create_dir(&devices).unwrap();
        let exec: Arc<dyn Exec> = Arc::new(Processes);
        let host = Arc::new(Linux::new(Arc::clone(&exec), Roots::default()));
        let settings = Settings {
            id: "i-test".parse().unwrap(),
            zone: "cn-beijing-c".parse().unwrap(),
            max_volumes: None,
            categories: Vec::new(),
            types: Default::default(),
            device_dir: Some(devices.clone()),
            kubelet_dir: dir.path().to_owned(),
            state_dir: dir.path().join("state"),
        };
        let world = Self {
            node: Arc::new(Node::new(host, exec, settings)),
            serial,
            dir,
        };
        fs::File::create(world.image())
            .unwrap()
            .set_len(SIZE)
            .unwrap();
        let device = sh(&format!("losetup -f --show {}", world.image().display())).await;
        symlink(device, devices.join(serial)).unwrap();
        world
    }

    fn image(&self) -> PathBuf {
        self.dir.path().join(format!("{}.img", self.serial))
    }

    fn device(&self) -> PathBuf {
        fs::read_link(self.dir.path().join("devices").join(self.serial)).unwrap()
    }

    fn staging(&self) -> PathBuf {
        self.dir.path().join("staging")
    }

    fn place(&self) -> diskplugin::node::VolumePath {
        self.staging().to_str().unwrap().parse().unwrap()
    }

    fn volume(&self) -> Volume {
        Volume::new(format!("d-{}", self.serial).parse().unwrap(), None)
    }

    async fn stage(&self, filesystem: Filesystem) {
        let request = StageRequest {
            volume: self.volume(),
            staging: self.place(),
            access: Access::Mount {
                filesystem,
                flags: MountFlags::default(),
            },
            read_only: false,
            device_read_only: false,
            tuning: Tuning {
                fsck: Fsck::Preen,
                ..Tuning::default()
            },
        };
        self.node.stage(request, ample()).await.unwrap();
    }

    async fn unstage(&self) {
        let request = UnstageRequest {
            volume: self.volume(),
            staging: self.place(),
        };
        self.node
            .unstage(request, Deadline::after(Duration::from_secs(60)))
            .await
            .unwrap();
    }

    async fn stats(&self) -> VolumeStats {
        let request = StatsRequest {
            volume: self.volume(),
            path: self.place(),
        };
        self.node.stats(&request, ample()).await.unwrap()
    }

    /// What statistics and health tell alike.
    async fn reasons(&self) -> Vec<&'static str> {
        let request = HealthRequest {
            volume: self.volume(),
            paths: vec![self.place()],
        };
        let told = self.node.health(&request, ample()).await.unwrap();
        assert_eq!(told, self.stats().await.health_issues);
        told.iter().map(|one| one.reason()).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        clean_up(self.dir.path());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filesystem_that_shut_down_is_told_and_its_size_still_is() {
    if !can_run().await {
        return;
    }
    let world = World::new("state0shutdown").await;
    world.stage(Filesystem::Xfs).await;
    assert!(matches!(
        world.stats().await.usage,
        Some(VolumeUsage::Filesystem(_))
    ));
    assert!(world.reasons().await.is_empty());
    sh(&format!(
        "xfs_io -x -c shutdown {}",
        world.staging().display()
    ))
    .await;
    assert_eq!(world.reasons().await, ["FilesystemShutDown"]);
    assert_eq!(
        world.stats().await.usage,
        Some(VolumeUsage::Device(Bytes(SIZE)))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_told_until_a_check_has_taken_them_back() {
    if !can_run().await {
        return;
    }
    let world = World::new("state0errors").await;
    world.stage(Filesystem::Ext4).await;
    assert!(world.reasons().await.is_empty());
    let name = world
        .device()
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    sh(&format!("echo 1 > /sys/fs/ext4/{name}/trigger_fs_error")).await;
    assert_eq!(world.reasons().await, ["FilesystemErrors"]);
    let told = world.stats().await.health_issues[0].to_string();
    assert!(told.contains("1 errors since its last check"), "{told}");
    world.unstage().await;
    world.stage(Filesystem::Ext4).await;
    assert!(world.reasons().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_that_lost_its_end_is_told() {
    if !can_run().await {
        return;
    }
    let world = World::new("state0short").await;
    world.stage(Filesystem::Ext4).await;
    let image = fs::OpenOptions::new()
        .write(true)
        .open(world.image())
        .unwrap();
    image.set_len(SIZE / 2).unwrap();
    sh(&format!("losetup -c {}", world.device().display())).await;
    assert_eq!(world.reasons().await, ["DeviceTooSmall"]);
    assert_eq!(image.set_len(SIZE).ok(), Some(()));
    sh(&format!("losetup -c {}", world.device().display())).await;
    assert!(world.reasons().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn growth_beyond_the_limit_is_refused_and_less_than_there_is_changes_nothing() {
    if !can_run().await {
        return;
    }
    let world = World::new("state0limit").await;
    world.stage(Filesystem::Xfs).await;
    let expand = |required: Option<u64>, limit: Option<u64>| {
        let request = ExpandRequest {
            volume: world.volume(),
            path: world.place(),
            required: required.map(Bytes),
            limit: limit.map(Bytes),
            block: false,
        };
        world.node.expand(request, ample())
    };
    for required in [None, Some(1), Some(SIZE)] {
        assert_eq!(expand(required, None).await.unwrap(), Bytes(SIZE));
    }
    let refused = expand(Some(1), Some(SIZE - 1)).await;
    assert!(
        matches!(refused, Err(Error::TooLarge { .. })),
        "{refused:?}"
    );
}

/// A mounted FUSE filesystem that nobody serves: whoever asks it waits.
struct Hung {
    dir: tempfile::TempDir,
    /// The kernel lets everybody go when it is closed.
    server: Option<fs::File>,
}

impl Hung {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let server = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/fuse")
            .unwrap();
        let fd = server.as_raw_fd();
        let options = format!("fd={fd},rootmode=40000,user_id=0,group_id=0");
        let (source, kind) = (Some("hung"), Some("fuse"));
        mount(
            source,
            dir.path(),
            kind,
            MsFlags::empty(),
            Some(options.as_str()),
        )
        .unwrap();
        Self {
            dir,
            server: Some(server),
        }
    }
}

impl Drop for Hung {
    fn drop(&mut self) {
        drop(self.server.take());
        // Best effort: the test may have failed.
        let _ = umount2(self.dir.path(), MntFlags::MNT_DETACH);
    }
}

fn mounted(minor: u64, point: &Path) -> (Device, Mount) {
    let number = Number { major: 7000, minor };
    let device = Device {
        name: "none".to_owned(),
        path: "/dev/null".into(),
        number,
        sequence: None,
        size: Bytes(SIZE),
        serial: None,
        backing_file: None,
        read_only: false,
        partitions: Vec::new(),
        holders: Vec::new(),
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
async fn a_filesystem_that_hangs_keeps_one_thread_and_nobody_else() {
    if !can_run().await {
        return;
    }
    let host = Linux::new(Arc::new(Processes), Roots::default());
    let mut hung = Hung::new();
    let (device, mount) = mounted(1, hung.dir.path());
    let brief = Deadline::after(Duration::from_millis(300));
    let late = host.vitals(brief, &device, &mount).await;
    assert!(matches!(late, Err(HostError::Late { .. })), "{late:?}");
    for _ in 0..20 {
        // Were it asked again, the answer would be that it is late.
        let again = host.vitals(ample(), &device, &mount).await;
        assert!(matches!(again, Err(HostError::Silent { .. })), "{again:?}");
    }
    let (other, place) = mounted(2, Path::new("/"));
    assert!(
        host.vitals(ample(), &other, &place)
            .await
            .unwrap()
            .usage
            .is_ok()
    );
    drop(hung.server.take());
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    let until = ample();
    loop {
        tick.tick().await;
        match host.vitals(ample(), &device, &mount).await {
            Err(HostError::Silent { .. }) if !until.is_over() => {}
            // It answers again, though only that it is dead.
            Ok(vitals) => break assert!(vitals.usage.unwrap_err().is_dead()),
            Err(error) => panic!("{error}"),
        }
    }
}
