//! Health of volumes on real filesystems: loop devices represent attached disks, and a FUSE filesystem without a server
//! represents a device that does not respond. Requires root, losetup and the filesystem tools.

use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::linux::ProcessExec;
use diskplugin::model::{Bytes, Failure, Filesystem, Fsck, MountFlags, Tuning};
use diskplugin::node::{
    Access, ExpandRequest, HealthRequest, NodeServices, PathRequest, StageRequest, Volume, VolumeStats, VolumeUsage,
};

use crate::common::shell::{self, sh};
use crate::disk::{Disk, SIZE};

mod hung;

fn long_deadline() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// Whether this machine can run these tests. Prints the reason if not.
async fn can_run() -> bool {
    let tools = "command -v mkfs.ext4 mkfs.xfs xfs_io && test -c /dev/fuse";
    shell::can_run("node::state", tools).await
}

/// A node with one attached disk.
struct World {
    disk: Disk,
    node: Arc<NodeServices>,
}

impl Deref for World {
    type Target = Disk;

    fn deref(&self) -> &Disk {
        &self.disk
    }
}

impl World {
    async fn new(serial: &str) -> Self {
        let disk = Disk::new(serial, SIZE);
        disk.attach().await;
        let node = disk.node(Arc::new(ProcessExec), Arc::new(ProcessExec));
        Self { disk, node }
    }

    fn staging(&self) -> PathBuf {
        self.path("staging")
    }

    fn staging_path(&self) -> diskplugin::node::VolumePath {
        self.staging().to_str().unwrap().parse().unwrap()
    }

    fn volume(&self) -> Volume {
        Volume::new(format!("d-{}", self.serial).parse().unwrap(), None)
    }

    async fn stage(&self, filesystem: Filesystem) {
        let request = StageRequest {
            volume: self.volume(),
            staging: self.staging_path(),
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
        self.node.stager.stage(request, long_deadline()).await.unwrap();
    }

    async fn unstage(&self) {
        let request = PathRequest {
            volume: self.volume(),
            path: self.staging_path(),
        };
        self.node
            .unmounter
            .unstage(request, Deadline::after(Duration::from_secs(60)))
            .await
            .unwrap();
    }

    async fn stats(&self) -> VolumeStats {
        let request = PathRequest {
            volume: self.volume(),
            path: self.staging_path(),
        };
        self.node.health.stats(&request, long_deadline()).await.unwrap()
    }

    /// The health issues, which `stats` and `health` report alike.
    async fn reasons(&self) -> Vec<&'static str> {
        let request = HealthRequest {
            volume: self.volume(),
            paths: vec![self.staging_path()],
        };
        let issues = self.node.health.health(&request, long_deadline()).await.unwrap();
        assert_eq!(issues, self.stats().await.health_issues);
        issues.iter().map(|issue| issue.reason()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shut_down_filesystem_is_reported_with_the_size_of_its_device() {
    if !can_run().await {
        return;
    }
    let world = World::new("state0shutdown").await;
    world.stage(Filesystem::Xfs).await;
    assert!(matches!(world.stats().await.usage, Some(VolumeUsage::Filesystem(_))));
    assert!(world.reasons().await.is_empty());
    sh(&format!("xfs_io -x -c shutdown {}", world.staging().display())).await;
    assert_eq!(world.reasons().await, ["FilesystemShutDown"]);
    assert_eq!(world.stats().await.usage, Some(VolumeUsage::Device(Bytes(SIZE))));
}

#[tokio::test(flavor = "multi_thread")]
async fn filesystem_errors_are_reported_until_a_check_clears_them() {
    if !can_run().await {
        return;
    }
    let world = World::new("state0errors").await;
    world.stage(Filesystem::Ext4).await;
    assert!(world.reasons().await.is_empty());
    let name = world.device().replace("/dev/", "");
    sh(&format!("echo 1 > /sys/fs/ext4/{name}/trigger_fs_error")).await;
    assert_eq!(world.reasons().await, ["RemountedReadOnly", "FilesystemErrors"]);
    let issue = world.stats().await.health_issues[1].to_string();
    assert!(issue.contains("1 errors since its last check"), "{issue}");
    world.unstage().await;
    world.stage(Filesystem::Ext4).await;
    assert!(world.reasons().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_smaller_than_its_filesystem_is_reported() {
    if !can_run().await {
        return;
    }
    let world = World::new("state0short").await;
    world.stage(Filesystem::Ext4).await;
    let image = fs::OpenOptions::new().write(true).open(world.image()).unwrap();
    image.set_len(SIZE / 2).unwrap();
    sh(&format!("losetup -c {}", world.device())).await;
    assert_eq!(world.reasons().await, ["DeviceTooSmall"]);
    assert_eq!(image.set_len(SIZE).ok(), Some(()));
    sh(&format!("losetup -c {}", world.device())).await;
    assert!(world.reasons().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn expand_fails_beyond_the_limit_and_ignores_smaller_sizes() {
    if !can_run().await {
        return;
    }
    let world = World::new("state0limit").await;
    world.stage(Filesystem::Xfs).await;
    let expand = |required: Option<u64>, limit: Option<u64>| {
        let request = ExpandRequest {
            volume: world.volume(),
            path: world.staging_path(),
            required: required.map(Bytes),
            limit: limit.map(Bytes),
            block: false,
        };
        world.node.expander.expand(request, long_deadline())
    };
    for required in [None, Some(1), Some(SIZE)] {
        assert_eq!(expand(required, None).await.unwrap(), Bytes(SIZE));
    }
    let error = expand(Some(1), Some(SIZE - 1)).await.unwrap_err();
    assert_eq!(error.failure(), Failure::OutOfRange, "{error:?}");
}
