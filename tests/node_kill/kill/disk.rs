//! Disks of the test: image files behind loop devices, with the symlinks of the fake cloud.

use std::fs::{self, File, OpenOptions};
use std::ops::Deref;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use nix::fcntl::OFlag;
use tokio::time::Instant;

use crate::common::disk;
pub(crate) use crate::common::disk::MIB;
use crate::common::shell::sh;
use crate::common::volume::LONG_TIMEOUT;

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

/// A disk of the node and its kind.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) kind: Kind,
    disk: disk::Disk,
}

impl Deref for Disk {
    type Target = disk::Disk;

    fn deref(&self) -> &disk::Disk {
        &self.disk
    }
}

impl Disk {
    /// Creates the image below the node's directory.
    pub(crate) async fn create(home: &Path, serial: &str, kind: Kind) -> Self {
        let image = home.join("disks").join(format!("{serial}.img"));
        let disk = disk::Disk::create(home, image, kind.sizes().0);
        fs::create_dir(disk.path("")).unwrap();
        let file = OpenOptions::new().write(true).open(&disk.image).unwrap();
        let image = disk.image.display();
        match kind {
            Kind::Foreign(ForeignContent::Head) => file.write_all_at(&[0xA5; 512], 0).unwrap(),
            Kind::Foreign(ForeignContent::Text) => file.write_all_at(b"foreign data", MIB).unwrap(),
            Kind::Foreign(ForeignContent::Swap) => drop(sh(&format!("mkswap {image}")).await),
            Kind::Foreign(ForeignContent::OtherFilesystem) => drop(sh(&format!("mkfs.minix {image}")).await),
            Kind::Ext4 | Kind::Xfs | Kind::Btrfs | Kind::Block => {}
        }
        Self { kind, disk }
    }

    /// Detaches the disk after killed processes have released it.
    pub(crate) async fn detach(&self) {
        let device = self.device();
        let exclusive = OFlag::O_EXCL.bits();
        let end = Instant::now() + LONG_TIMEOUT;
        while let Err(error) = OpenOptions::new().read(true).custom_flags(exclusive).open(&device) {
            assert!(Instant::now() < end, "{device} is in use: {error}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.disk.detach().await;
    }

    /// Resizes the image and, if it is attached, its device.
    pub(crate) async fn resize(&self) {
        self.disk.resize(self.kind.sizes().1).await;
    }

    pub(crate) fn size(&self) -> u64 {
        fs::metadata(&self.image).unwrap().len()
    }

    pub(crate) fn uuid(&self) -> Option<[u8; 16]> {
        let mut uuid = [0; 16];
        let image = File::open(&self.image).unwrap();
        image.read_exact_at(&mut uuid, self.kind.uuid_offset()?).unwrap();
        Some(uuid)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(&self.image).unwrap()
    }

    /// Checks the filesystem with its tool. The disk must be unused.
    pub(crate) async fn check_filesystem(&self) {
        let image = self.image.display();
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
        let image = File::open(&self.image).unwrap();
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
        fs::remove_file(&self.image).unwrap();
        // The driver does not own the volume's directory.
        fs::remove_dir(self.path("")).unwrap();
    }
}
