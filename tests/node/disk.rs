//! A loop device that represents an attached disk, and nodes that find it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diskplugin::linux::{Exec, Linux, Roots};
use diskplugin::model::DriverName;
use diskplugin::node::{NodeServices, NodeSettings};

use crate::common::loop_device::{attach_command, detach_command};
use crate::common::shell::{clean_up, sh};

pub(crate) const MIB: u64 = 1 << 20;

/// The disk size in bytes. btrfs has the largest minimum.
pub(crate) const SIZE: u64 = 320 * MIB;

/// Dropping it unmounts and detaches everything, also after a panic.
#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) serial: String,
}

impl Disk {
    /// Creates a blank disk that is not attached. The serial must be unique among the tests.
    pub(crate) fn new(serial: &str, size: u64) -> Self {
        let disk = Self {
            dir: tempfile::tempdir().unwrap(),
            serial: serial.to_owned(),
        };
        fs::create_dir(disk.path("devices")).unwrap();
        fs::File::create(disk.image()).unwrap().set_len(size).unwrap();
        disk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.path(&format!("{}.img", self.serial))
    }

    pub(crate) fn link(&self) -> PathBuf {
        self.path("devices").join(&self.serial)
    }

    pub(crate) fn device(&self) -> String {
        let device = fs::read_link(self.link()).unwrap();
        device.to_str().unwrap().to_owned()
    }

    /// Attaches the disk as the fake cloud does.
    pub(crate) async fn attach(&self) -> String {
        let device = sh(&attach_command(&self.image())).await;
        symlink(&device, self.link()).unwrap();
        device
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

    /// A node without state of earlier calls.
    pub(crate) fn node(&self, host_exec: Arc<dyn Exec>, exec: Arc<dyn Exec>) -> Arc<NodeServices> {
        node(self.dir.path(), host_exec, exec)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        clean_up(self.dir.path());
    }
}

/// A node that finds its disks in the folder `devices` of a directory and keeps its state beside it.
pub(crate) fn node(dir: &Path, host_exec: Arc<dyn Exec>, exec: Arc<dyn Exec>) -> Arc<NodeServices> {
    let host = Arc::new(Linux::new(host_exec, Roots::default()));
    let settings = NodeSettings {
        id: "i-test".parse().unwrap(),
        zone: "cn-beijing-c".parse().unwrap(),
        max_volumes: None,
        categories: Vec::new(),
        instance_types: Default::default(),
        device_dir: Some(dir.join("devices")),
        kubelet_dir: dir.to_owned(),
        state_dir: dir.join("state"),
    };
    Arc::new(NodeServices::new(host, exec, settings, DriverName::default(), None))
}
