//! Disks whose reads or writes can be blocked.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::mount::{MntFlags, umount2};
use nix::sys::signal::Signal;

use crate::common::disk::{Disk, MIB};
use crate::common::loop_device::attribute;
use crate::common::machine::TestDir;
use crate::common::process::{Process, Start};
use crate::common::shell::{has, sh};
use crate::common::wait::until;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Reads from the device without the page cache, as the I/O of a pod. Returns once the read is in flight.
pub(crate) async fn read_directly(disk: &Disk) -> Process {
    let source = format!("if={}", disk.device());
    let arguments = ["of=/dev/null", "bs=4096", "count=1", "iflag=direct"];
    let reader = Start::of("dd").args([source.as_str()]).args(arguments).spawn();
    until("the read is in flight", TIMEOUT, async || {
        let counts = attribute(Path::new(&disk.device()), "inflight").unwrap();
        counts.split_whitespace().any(|count| count != "0").then_some(())
    })
    .await;
    reader
}

/// A filesystem that can be frozen: writes to images on it block until it is thawed.
#[derive(Debug)]
pub(crate) struct FreezableFilesystem {
    pub(crate) directory: PathBuf,
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
        let thaw = format!("fsfreeze --unfreeze {} 2>/dev/null", self.directory.display());
        Start::of("sh").args(["-c", &thaw]).run_blocking();
        // If the test failed, its images may still be in use.
        let _ = umount2(&self.directory, MntFlags::MNT_DETACH);
    }
}

/// A disk image that another process serves. While the process is stopped, reads and writes block.
#[derive(Debug)]
pub(crate) struct ExportedImage {
    server: Process,
    served: PathBuf,
}

impl ExportedImage {
    /// Whether the server is installed. Prints the reason if not.
    pub(crate) async fn is_supported() -> bool {
        let probe = "command -v qemu-storage-daemon && test -c /dev/fuse";
        has("node::hung", probe, "qemu-storage-daemon and /dev/fuse are required").await
    }

    pub(crate) async fn new(home: &TestDir, serial: &str) -> Self {
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
        Self { server, served }
    }

    pub(crate) async fn disk(&self, home: &TestDir) -> Disk {
        let disk = Disk::of_image(home.path(), self.served.clone());
        disk.attach().await;
        disk
    }

    /// Removes the content of the disk from the page cache of the file behind its device, which a real disk does not
    /// have. The page cache of the device remains.
    pub(crate) async fn drop_file_cache(&self, mount: &str) {
        let served = self.served.display();
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
