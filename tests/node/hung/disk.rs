//! Disks whose reads or writes can be blocked.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::mount::{MntFlags, umount2};
use nix::sys::signal::Signal;

use crate::common::machine::TestDir;
use crate::common::process::{Process, Start};
use crate::common::shell::{has, sh};
use crate::common::wait::until;

const MIB: u64 = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(60);

fn run_blocking(line: &str) {
    // Best effort: destructors call this.
    Start::of("sh").args(["-c", line]).run_blocking();
}

/// A disk that is backed by a loop device.
#[derive(Debug)]
pub(crate) struct Disk {
    home: PathBuf,
    serial: &'static str,
    device: String,
}

impl Disk {
    /// Creates a blank disk with its image in the directory.
    pub(crate) async fn new(home: &TestDir, directory: &Path, serial: &'static str) -> Self {
        let image = directory.join(format!("{serial}.img"));
        File::create(&image).unwrap().set_len(16 * MIB).unwrap();
        Self::from_image(home, &image, serial).await
    }

    async fn from_image(home: &TestDir, image: &Path, serial: &'static str) -> Self {
        let device = sh(&format!("flock /dev losetup --find --show {}", image.display())).await;
        symlink(&device, home.path().join("devices").join(serial)).unwrap();
        Self {
            home: home.path().to_owned(),
            serial,
            device,
        }
    }

    pub(crate) fn volume(&self) -> String {
        format!("d-{}", self.serial)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.join("kubelet").join(self.serial).join(name)
    }

    /// Reads from the device without the page cache, as the I/O of a pod. Returns once the read is in flight.
    pub(crate) async fn read_directly(&self) -> Process {
        let source = format!("if={}", self.device);
        let arguments = ["of=/dev/null", "bs=4096", "count=1", "iflag=direct"];
        let reader = Start::of("dd").args([source.as_str()]).args(arguments).spawn();
        let name = self.device.trim_start_matches("/dev/");
        let file = format!("/sys/block/{name}/inflight");
        until("the read is in flight", TIMEOUT, async || {
            let counts = fs::read_to_string(&file).unwrap();
            counts.split_whitespace().any(|count| count != "0").then_some(())
        })
        .await;
        reader
    }

    /// Detaches the disk, which must be unused.
    pub(crate) async fn detach(&self) {
        sh(&format!("losetup --detach {}", self.device)).await;
        let name = self.device.trim_start_matches("/dev/");
        let file = format!("/sys/block/{name}/loop/backing_file");
        until("the device is free", TIMEOUT, async || {
            let backing_file = fs::read_to_string(&file).unwrap_or_default();
            (!backing_file.contains(self.serial)).then_some(())
        })
        .await;
    }
}

/// A filesystem that can be frozen: writes to images on it block until it is thawed.
#[derive(Debug)]
pub(crate) struct FreezableFilesystem {
    directory: PathBuf,
}

impl FreezableFilesystem {
    pub(crate) async fn new(home: &TestDir) -> Self {
        let (image, directory) = (home.path().join("base.img"), home.path().join("base"));
        File::create(&image).unwrap().set_len(64 * MIB).unwrap();
        fs::create_dir(&directory).unwrap();
        let (image, mount_point) = (image.display(), directory.display());
        sh(&format!("mkfs.ext4 -q {image}; mount -o loop {image} {mount_point}")).await;
        Self { directory }
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.directory.clone()
    }

    pub(crate) async fn freeze(&self) {
        sh(&format!("fsfreeze --freeze {}", self.directory.display())).await;
    }

    pub(crate) async fn thaw(&self) {
        sh(&format!("fsfreeze --unfreeze {}", self.directory.display())).await;
    }
}

impl Drop for FreezableFilesystem {
    /// Unblocks all writes: otherwise the machine hangs at its next sync.
    fn drop(&mut self) {
        run_blocking(&format!("fsfreeze --unfreeze {} 2>/dev/null", self.directory.display()));
        // If the test failed, its images may still be in use.
        let _ = umount2(&self.directory, MntFlags::MNT_DETACH);
    }
}

/// A disk image that another process serves. While the process is stopped, reads and writes block.
#[derive(Debug)]
pub(crate) struct ExportedImage {
    server: Process,
    serial: &'static str,
    served: PathBuf,
}

impl ExportedImage {
    /// Whether the server is installed. Prints the reason if not.
    pub(crate) async fn is_supported() -> bool {
        let probe = "command -v qemu-storage-daemon && test -c /dev/fuse";
        has("node::hung", probe, "qemu-storage-daemon and /dev/fuse are required").await
    }

    pub(crate) async fn new(home: &TestDir, serial: &'static str) -> Self {
        let image = home.path().join("exported.raw");
        File::create(&image).unwrap().set_len(16 * MIB).unwrap();
        let served = home.path().join("disks").join(format!("{serial}.img"));
        File::create(&served).unwrap();
        let blockdev = format!("driver=file,node-name=f,filename={}", image.display());
        let export = format!("type=fuse,id=e,node-name=f,mountpoint={},writable=on", served.display());
        let server = Start::of("qemu-storage-daemon")
            .args(["--blockdev", &blockdev, "--export", &export])
            .spawn();
        until("the image is served", TIMEOUT, async || {
            (fs::metadata(&served).ok()?.len() == 16 * MIB).then_some(())
        })
        .await;
        Self { server, serial, served }
    }

    pub(crate) async fn disk(&self, home: &TestDir) -> Disk {
        Disk::from_image(home, &self.served, self.serial).await
    }

    /// Removes the content of the disk from the page cache of the file behind its device, which a real disk does not
    /// have. The page cache of the device remains.
    pub(crate) async fn drop_file_cache(&self, mount: &Path) {
        let (served, mount) = (self.served.display(), mount.display());
        sh(&format!(
            "sync -f {mount}; dd if=/dev/null of={served} oflag=nocache conv=notrunc,fdatasync status=none"
        ))
        .await;
    }

    pub(crate) fn stop(&self) {
        self.server.signal(Signal::SIGSTOP);
    }

    pub(crate) fn resume(&self) {
        self.server.signal(Signal::SIGCONT);
    }
}

impl Drop for ExportedImage {
    fn drop(&mut self) {
        self.resume();
    }
}
