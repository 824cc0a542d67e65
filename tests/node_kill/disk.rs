//! Disks of the test: image files behind loop devices, marked as the fake cloud marks them.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::host::{Command, Exec, Processes};
use tokio::time::Instant;

pub(crate) const MIB: u64 = 1 << 20;

/// Longer than anything takes that must not hang.
const AMPLE: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(10);

/// What a disk is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Ext4,
    Xfs,
    Btrfs,
    Block,
    /// It came with data that is not the driver's, at this place; it is asked for as ext4.
    Foreign(Before),
}

/// What is on a disk before it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Before {
    /// Bytes at the start that nobody knows.
    Head,
    /// A text at 1 MiB.
    Text,
    /// Swap space.
    Swap,
    /// Another filesystem than is asked for.
    Other,
}

impl Kind {
    /// That of the disk with this number: one in six is foreign.
    pub(crate) fn of(number: u64) -> Self {
        match number % 6 {
            0 => Self::Xfs,
            1 => Self::Btrfs,
            2 | 3 => Self::Ext4,
            4 => Self::Block,
            _ => Self::Foreign(match number / 6 % 4 {
                0 => Before::Head,
                1 => Before::Text,
                2 => Before::Swap,
                _ => Before::Other,
            }),
        }
    }

    /// As requests name it.
    pub(crate) fn fs_type(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Foreign(_) => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Block => "",
        }
    }

    /// At first, and grown. xfs takes nothing below 300 MiB, btrfs grows to nothing below 256 MiB.
    pub(crate) fn sizes(self) -> (u64, u64) {
        match self {
            Self::Ext4 => (24 * MIB, 80 * MIB),
            Self::Xfs => (300 * MIB, 360 * MIB),
            Self::Btrfs => (256 * MIB, 320 * MIB),
            Self::Block => (16 * MIB, 24 * MIB),
            Self::Foreign(_) => (16 * MIB, 16 * MIB),
        }
    }

    /// Where the filesystem has its UUID.
    fn uuid_at(self) -> Option<u64> {
        match self {
            Self::Ext4 => Some(1024 + 0x68),
            Self::Xfs => Some(32),
            Self::Btrfs => Some((64 << 10) + 32),
            Self::Block | Self::Foreign(_) => None,
        }
    }
}

/// A disk and its places on the node.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub(crate) kind: Kind,
    pub(crate) serial: String,
    home: PathBuf,
}

impl Disk {
    /// A new image below the lane's home.
    pub(crate) async fn make(home: &Path, serial: String, kind: Kind) -> Self {
        let disk = Self {
            kind,
            serial,
            home: home.to_owned(),
        };
        let file = File::create_new(disk.image()).unwrap();
        file.set_len(kind.sizes().0).unwrap();
        fs::create_dir(disk.place("")).unwrap();
        let image = disk.image();
        match kind {
            Kind::Foreign(Before::Head) => file.write_all_at(&[0xA5; 512], 0).unwrap(),
            Kind::Foreign(Before::Text) => file.write_all_at(b"a letter", MIB).unwrap(),
            Kind::Foreign(Before::Swap) => drop(sh(&format!("mkswap {}", image.display())).await),
            Kind::Foreign(Before::Other) => {
                drop(sh(&format!("mkfs.ext2 -q {}", image.display())).await);
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

    /// A place that the orchestrator names.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.home.join("kubelet").join(&self.serial).join(name)
    }

    fn device(&self) -> PathBuf {
        fs::read_link(self.link()).unwrap()
    }

    pub(crate) async fn attach(&self) {
        let image = self.image();
        let made = format!("losetup --find --show --nooverlap {}", image.display());
        let device = sh(&made).await;
        // A loop device keeps the access that its last user gave it, which no new disk has.
        sh(&format!("blockdev --setrw {device}")).await;
        symlink(device, self.link()).unwrap();
    }

    /// Takes it off. Nothing may use it any more, once what was killed has let go of it.
    pub(crate) async fn detach(&self) {
        let device = self.device();
        let free = format!("{} is used by nobody", device.display());
        until(&free, || exclusive(&device)).await;
        sh(&format!("losetup --detach {}", device.display())).await;
        fs::remove_file(self.link()).unwrap();
        let gone = format!("{} is free", device.display());
        let image = self.image();
        until(&gone, || backing_file(&device).as_ref() != Some(&image)).await;
    }

    /// Makes the image and, where it is attached, its device larger.
    pub(crate) async fn grow(&self) {
        let image = OpenOptions::new().write(true).open(self.image()).unwrap();
        image.set_len(self.kind.sizes().1).unwrap();
        if self.link().exists() {
            sh(&format!(
                "losetup --set-capacity {}",
                self.device().display()
            ))
            .await;
        }
    }

    pub(crate) fn size(&self) -> u64 {
        fs::metadata(self.image()).unwrap().len()
    }

    /// The UUID of its filesystem.
    pub(crate) fn uuid(&self) -> Option<[u8; 16]> {
        let mut uuid = [0; 16];
        let image = File::open(self.image()).unwrap();
        image
            .read_exact_at(&mut uuid, self.kind.uuid_at()?)
            .unwrap();
        Some(uuid)
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read(self.image()).unwrap()
    }

    /// The filesystem as its own tool sees it, while nobody uses the disk.
    pub(crate) async fn is_sound(&self) {
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

    /// How many bytes the filesystem says that it has.
    pub(crate) fn stated(&self) -> u64 {
        let image = File::open(self.image()).unwrap();
        let at = |offset, length: usize| {
            let mut bytes = vec![0; length];
            image.read_exact_at(&mut bytes, offset).unwrap();
            bytes
        };
        let le = |bytes: Vec<u8>| {
            bytes
                .iter()
                .rev()
                .fold(0, |all, &byte| all << 8 | u64::from(byte))
        };
        let be = |bytes: Vec<u8>| {
            bytes
                .iter()
                .fold(0, |all, &byte| all << 8 | u64::from(byte))
        };
        match self.kind {
            Kind::Ext4 => le(at(1024 + 4, 4)) * (1024 << le(at(1024 + 24, 4))),
            Kind::Xfs => be(at(4, 4)) * be(at(8, 8)),
            Kind::Btrfs => le(at((64 << 10) + 112, 8)),
            Kind::Block | Kind::Foreign(_) => self.size(),
        }
    }

    pub(crate) fn remove(&self) {
        fs::remove_file(self.image()).unwrap();
        // Not the driver's: the directory above its places.
        fs::remove_dir(self.place("")).unwrap();
    }
}

/// Whether nobody has the device for himself.
fn exclusive(device: &Path) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let exclusive = nix::fcntl::OFlag::O_EXCL.bits();
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(exclusive)
        .open(device);
    opened.is_ok()
}

/// The file behind a loop device.
pub(crate) fn backing_file(device: &Path) -> Option<PathBuf> {
    let name = device.file_name()?.to_str()?;
    let text = fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).ok()?;
    Some(PathBuf::from(text.trim_end()))
}

/// Waits until it is so.
async fn until(what: &str, is_so: impl Fn() -> bool + Send) {
    let end = Instant::now() + AMPLE;
    while !is_so() {
        assert!(Instant::now() < end, "not within {AMPLE:?}: {what}");
        tokio::time::sleep(TICK).await;
    }
}

/// Runs a command line that must do well; what it prints.
pub(crate) async fn sh(line: &str) -> String {
    let command = Command::new("sh").args(["-ec", line]);
    let ended = Processes.run(&command, Deadline::after(AMPLE)).await;
    let ended = command.success(ended.unwrap());
    ended.unwrap().stdout.trim().to_owned()
}
