//! Loop devices that represent attached disks, and nodes that find them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use diskplugin::linux::{Exec, Linux, Roots};
use diskplugin::model::{DriverName, Filesystem, MountFlags, Tuning};
use diskplugin::node::{Access, NodeServices, NodeSettings, PathRequest, StageRequest, Volume};

use super::loop_device::{attach_command, detach_command};
use super::shell::sh;

pub(crate) const MIB: u64 = 1 << 20;

/// The disk size in bytes. btrfs has the largest minimum.
pub(crate) const SIZE: u64 = 320 * MIB;

/// A disk of the node in a directory, which contains the links to devices in `devices`. Clones refer to the same disk.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    home: PathBuf,
    pub(crate) serial: String,
    pub(crate) image: PathBuf,
}

impl Disk {
    /// Creates a blank disk that is not attached. The serial must be unique among the tests.
    pub(crate) fn new(home: &Path, serial: &str, size: u64) -> Self {
        Self::create(home, home.join(format!("{serial}.img")), size)
    }

    /// The same with this image, whose name is the serial.
    pub(crate) fn create(home: &Path, image: PathBuf, size: u64) -> Self {
        fs::File::create_new(&image).unwrap().set_len(size).unwrap();
        Self::of_image(home, image)
    }

    pub(crate) fn of_image(home: &Path, image: PathBuf) -> Self {
        fs::create_dir_all(home.join("devices")).unwrap();
        Self {
            home: home.to_owned(),
            serial: image.file_stem().unwrap().to_str().unwrap().to_owned(),
            image,
        }
    }

    pub(crate) fn volume(&self) -> String {
        format!("d-{}", self.serial)
    }

    pub(crate) fn link(&self) -> PathBuf {
        self.home.join("devices").join(&self.serial)
    }

    pub(crate) fn device(&self) -> String {
        let device = fs::read_link(self.link()).unwrap();
        device.to_str().unwrap().to_owned()
    }

    /// A path in the volume's directory below kubelet's directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.join("kubelet").join(&self.serial).join(name)
    }

    /// Attaches the disk as the fake cloud does.
    pub(crate) async fn attach(&self) -> String {
        let device = sh(&attach_command(&self.image)).await;
        symlink(&device, self.link()).unwrap();
        device
    }

    pub(crate) async fn detach(&self) {
        sh(&detach_command(&self.device())).await;
        fs::remove_file(self.link()).unwrap();
    }

    /// Resizes the image and, if it is attached, its device.
    pub(crate) async fn resize(&self, size: u64) {
        let image = fs::OpenOptions::new().write(true).open(&self.image);
        image.unwrap().set_len(size).unwrap();
        if self.link().exists() {
            sh(&format!("losetup -c {}", self.device())).await;
        }
    }

    /// The SHA-256 of the content of the disk.
    pub(crate) async fn hash(&self) -> String {
        let device = self.device();
        sh(&format!("sync {device}; sha256sum < {device}")).await
    }

    /// A node without state of earlier calls.
    pub(crate) fn node(&self, host_exec: Arc<dyn Exec>, exec: Arc<dyn Exec>) -> Arc<NodeServices> {
        node(&self.home, host_exec, exec)
    }

    /// A request to stage the disk in the directory of the node.
    pub(crate) fn stage_request(&self, filesystem: Filesystem) -> StageRequest {
        let PathRequest { volume, path } = self.unstage_request();
        StageRequest {
            volume,
            staging: path,
            access: Access::Mount {
                filesystem,
                flags: MountFlags::default(),
            },
            read_only: false,
            device_read_only: false,
            tuning: Tuning::default(),
        }
    }

    pub(crate) fn unstage_request(&self) -> PathRequest {
        PathRequest {
            volume: Volume::new(self.volume().parse().unwrap(), None),
            path: self.home.join("staging").to_str().unwrap().parse().unwrap(),
        }
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
