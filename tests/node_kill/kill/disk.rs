//! Disks of the test: image files behind loop devices, with the symlinks of the fake cloud.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use crate::common::shell::sh;

pub(crate) const MIB: u64 = 1 << 20;

/// Timeout of operations that must not block.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
    Btrfs,
    Block,
    /// Contains foreign data and is requested as ext4.
    Foreign(ForeignContent),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ForeignContent {
    /// Unknown bytes at the start.
    Head,
    /// A text at 1 MiB.
    Text,
    Swap,
    /// Another filesystem type than requested.
    OtherFilesystem,
}

impl Kind {
    /// The kind of the disk with this number: one in six is foreign.
    pub(crate) fn from_number(number: u64) -> Self {
        match number % 6 {
            0 => Self::Xfs,
            1 => Self::Btrfs,
            2 | 3 => Self::Ext4,
            4 => Self::Block,
            _ => Self::Foreign(match number / 6 % 4 {
                0 => ForeignContent::Head,
                1 => ForeignContent::Text,
                2 => ForeignContent::Swap,
                _ => ForeignContent::OtherFilesystem,
            }),
        }
    }

    /// The `fs_type` of requests.
    pub(crate) fn fs_type(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Foreign(_) => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Block => "",
        }
    }

    /// The initial and the resized disk size in bytes. The minimum of xfs is 300 MiB, that of a btrfs resize 256 MiB.
    pub(crate) fn sizes(self) -> (u64, u64) {
        match self {
            Self::Ext4 => (24 * MIB, 80 * MIB),
            Self::Xfs => (300 * MIB, 360 * MIB),
            Self::Btrfs => (256 * MIB, 320 * MIB),
            Self::Block => (16 * MIB, 24 * MIB),
            Self::Foreign(_) => (16 * MIB, 16 * MIB),
        }
    }

    /// The offset of the filesystem's UUID in bytes.
    fn uuid_offset(self) -> Option<u64> {
        match self {
            Self::Ext4 => Some(1024 + 0x68),
            Self::Xfs => Some(32),
            Self::Btrfs => Some((64 << 10) + 32),
            Self::Block | Self::Foreign(_) => None,
        }
    }
}

/// A disk and its paths on the node.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) kind: Kind,
    pub(crate) serial: String,
    home: PathBuf,
}

impl Disk {
    /// Creates the image below the node's directory.
    pub(crate) async fn create(home: &Path, serial: String, kind: Kind) -> Self {
        let disk = Self {
            kind,
            serial,
            home: home.to_owned(),
        };
        let file = File::create_new(disk.image()).unwrap();
        file.set_len(kind.sizes().0).unwrap();
        fs::create_dir(disk.path("")).unwrap();
        let image = disk.image();
        match kind {
            Kind::Foreign(ForeignContent::Head) => file.write_all_at(&[0xA5; 512], 0).unwrap(),
            Kind::Foreign(ForeignContent::Text) => file.write_all_at(b"foreign data", MIB).unwrap(),
            Kind::Foreign(ForeignContent::Swap) => {
                drop(sh(&format!("mkswap {}", image.display())).await);
            }
            Kind::Foreign(ForeignContent::OtherFilesystem) => {
                drop(sh(&format!("mkfs.minix {}", image.display())).await);
            }
            Kind::Ext4 | Kind::Xfs | Kind::Btrfs | Kind::Block => {}
        }
        disk
    }

    pub(crate) fn volume(&self) -> String {
        format!("d-{}", self.serial)
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.home.join("disks").join(format!("{}.img", self.serial))
    }

    fn link(&self) -> PathBuf {
        self.home.join("devices").join(&self.serial)
    }

    /// A path in the volume's directory below the kubelet directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.join("kubelet").join(&self.serial).join(name)
    }

    fn device(&self) -> PathBuf {
        fs::read_link(self.link()).unwrap()
    }

    pub(crate) async fn attach(&self) {
        let image = self.image();
        let losetup = format!("flock /dev losetup --find --show --nooverlap {}", image.display());
        let device = sh(&losetup).await;
        // A loop device keeps the read-only flag of its last user.
        sh(&format!("blockdev --setrw {device}")).await;
        symlink(device, self.link()).unwrap();
    }

    /// Detaches the disk after killed processes have released it.
    pub(crate) async fn detach(&self) {
        let device = self.device();
        let is_unused = format!("{} is unused", device.display());
        until(&is_unused, || can_open_exclusively(&device)).await;
        sh(&format!("losetup --detach {}", device.display())).await;
        fs::remove_file(self.link()).unwrap();
        let is_free = format!("{} is free", device.display());
        let image = self.image();
        until(&is_free, || backing_file(&device).as_ref() != Some(&image)).await;
    }

    /// Resizes the image and, if it is attached, its device.
    pub(crate) async fn resize(&self) {
        let image = OpenOptions::new().write(true).open(self.image()).unwrap();
        image.set_len(self.kind.sizes().1).unwrap();
        if self.link().exists() {
            sh(&format!("losetup --set-capacity {}", self.device().display())).await;
        }
    }

    pub(crate) fn size(&self) -> u64 {
        fs::metadata(self.image()).unwrap().len()
    }

    pub(crate) fn uuid(&self) -> Option<[u8; 16]> {
        let mut uuid = [0; 16];
        let image = File::open(self.image()).unwrap();
        image.read_exact_at(&mut uuid, self.kind.uuid_offset()?).unwrap();
        Some(uuid)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.image()).unwrap()
    }

    /// Checks the filesystem with its tool. The disk must be unused.
    pub(crate) async fn check_filesystem(&self) {
        let image = self.image();
        let image = image.display();
        let check = match self.kind {
            Kind::Ext4 => "e2fsck -f -n",
            Kind::Xfs => "xfs_repair -n -f",
            Kind::Btrfs => "btrfs check --readonly",
            Kind::Block | Kind::Foreign(_) => return,
        };
        sh(&format!("{check} {image} 2>&1")).await;
    }

    /// The size in bytes in the filesystem's superblock.
    pub(crate) fn filesystem_size(&self) -> u64 {
        let image = File::open(self.image()).unwrap();
        let at = |offset, length: usize| {
            let mut bytes = vec![0; length];
            image.read_exact_at(&mut bytes, offset).unwrap();
            bytes
        };
        let le = |bytes: Vec<u8>| bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte));
        let be = |bytes: Vec<u8>| bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte));
        match self.kind {
            Kind::Ext4 => le(at(1024 + 4, 4)) * (1024 << le(at(1024 + 24, 4))),
            Kind::Xfs => be(at(4, 4)) * be(at(8, 8)),
            Kind::Btrfs => le(at((64 << 10) + 112, 8)),
            Kind::Block | Kind::Foreign(_) => self.size(),
        }
    }

    pub(crate) fn remove(&self) {
        fs::remove_file(self.image()).unwrap();
        // The driver does not own the volume's directory.
        fs::remove_dir(self.path("")).unwrap();
    }
}

/// Whether the device can be opened with `O_EXCL`.
fn can_open_exclusively(device: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let exclusive = nix::fcntl::OFlag::O_EXCL.bits();
    let opened = OpenOptions::new().read(true).custom_flags(exclusive).open(device);
    opened.is_ok()
}

pub(crate) fn backing_file(device: &Path) -> Option<PathBuf> {
    let name = device.file_name()?.to_str()?;
    let text = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).ok()?;
    Some(PathBuf::from(text.trim_end()))
}

async fn until(condition: &str, is_met: impl Fn() -> bool + Send) {
    let end = Instant::now() + TIMEOUT;
    while !is_met() {
        assert!(Instant::now() < end, "not within {TIMEOUT:?}: {condition}");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
