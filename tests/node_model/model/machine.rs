//! The system under test: loop devices, mounts and a node in this process, on a real kernel.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use diskplugin::csi::node::Service;
use diskplugin::linux::ProcessExec;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::common::disk::{MIB, node};
use crate::common::loop_device::{attach_command, backing_file, detach_command};
use crate::common::machine::TestDir;
use crate::common::mounts::MountLine;
use crate::common::shell::sh;
use crate::common::volume::LONG_TIMEOUT;
use crate::model::call::{is_loop_device_busy, is_still_running, outcome};
use crate::model::verify;
use crate::model::world::{Device, Entry, Event, FsType, Mount, Outcome, VOLUMES, World};

/// Timeout of calls that must exceed their deadline.
pub(crate) const SHORT_TIMEOUT: Duration = Duration::from_millis(40);
/// Retries while another process uses a loop device.
const MAX_RETRIES: u32 = 5;
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// More than the size of the images of both tests, in bytes.
const REQUIRED_SPACE: u64 = 1 << 30;

/// The content of a foreign disk.
pub(crate) const FOREIGN_DATA: &[u8] = b"foreign data";
pub(crate) const FOREIGN_DATA_OFFSET: u64 = MIB;

impl FsType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The name of another filesystem type.
    pub(crate) fn other(self) -> &'static str {
        match self {
            Self::Ext4 => "xfs",
            Self::Xfs | Self::Btrfs => "ext4",
        }
    }

    /// The initial and the resized disk size in bytes, close to the minimum of the tools and the kernel.
    pub(crate) fn sizes(self) -> (u64, u64) {
        match self {
            Self::Ext4 => (8 * MIB, 64 * MIB),
            Self::Xfs => (300 * MIB, 364 * MIB),
            Self::Btrfs => (256 * MIB, 320 * MIB),
        }
    }

    /// The size in bytes above which a filesystem has been grown.
    pub(crate) fn grown_threshold(self) -> u64 {
        let (small, big) = self.sizes();
        let log = match self {
            Self::Xfs => XFS_LOG,
            Self::Ext4 | Self::Btrfs => 0,
        };
        small.midpoint(big) - log
    }
}

/// The size of the xfs log in bytes, which statfs does not include.
const XFS_LOG: u64 = 64 * MIB;

/// The state on the real kernel. Dropping it unmounts and detaches everything.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) dir: TestDir,
    /// Part of the serials, which are unique per case.
    case: u64,
    pub(crate) service: Service,
    /// Whether the node restarts before each call.
    restarts: bool,
    pub(crate) loops: [Option<PathBuf>; VOLUMES],
    /// The filesystem UUIDs that were observed.
    pub(crate) uuids: [Option<[u8; 16]>; VOLUMES],
    pub(crate) runtime: Runtime,
}

/// The directory of the images: in memory if there is enough space, so that steps do not wait for the disk.
fn image_dir() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let free = nix::sys::statvfs::statvfs(&memory).map_or(0, |found| found.blocks_available() * found.fragment_size());
    match free > REQUIRED_SPACE {
        true => memory,
        false => std::env::temp_dir(),
    }
}

/// A node without state of earlier calls.
fn service(dir: &Path) -> Service {
    Service(node(dir, Arc::new(ProcessExec), Arc::new(ProcessExec)))
}

impl Machine {
    pub(crate) fn new(world: &World, case: u64, restarts: bool) -> Self {
        let dir = TestDir::new_in(&image_dir());
        for name in ["devices", "disks", "paths"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut machine = Self {
            service: service(dir.path()),
            dir,
            case,
            restarts,
            loops: [const { None }; VOLUMES],
            uuids: [None; VOLUMES],
            runtime,
        };
        for volume in 0..VOLUMES {
            machine.make_image(world, volume, false);
            if world.is_present(volume) {
                machine.attach(volume);
            }
        }
        machine
    }

    pub(crate) fn mount_point(&self, mount_point: usize) -> PathBuf {
        self.dir.path().join("paths").join(format!("p{mount_point}"))
    }

    pub(crate) fn serial(&self, volume: usize) -> String {
        format!("nm{}v{volume}", self.case)
    }

    pub(crate) fn image(&self, volume: usize) -> PathBuf {
        let name = format!("{}.img", self.serial(volume));
        self.dir.path().join("disks").join(name)
    }

    fn link(&self, volume: usize) -> PathBuf {
        self.dir.path().join("devices").join(self.serial(volume))
    }

    fn run_shell(&self, line: &str) -> String {
        self.runtime.block_on(sh(line))
    }

    fn make_image(&mut self, world: &World, volume: usize, foreign: bool) {
        let file = File::create(self.image(volume)).unwrap();
        file.set_len(world.volumes[volume].fs.sizes().0).unwrap();
        if foreign {
            file.write_all_at(FOREIGN_DATA, FOREIGN_DATA_OFFSET).unwrap();
        }
        self.uuids[volume] = None;
    }

    fn attach(&mut self, volume: usize) {
        let device = self.run_shell(&attach_command(&self.image(volume)));
        symlink(&device, self.link(volume)).unwrap();
        self.loops[volume] = Some(device.into());
    }

    pub(crate) fn restart_if_configured(&mut self) {
        if self.restarts {
            self.service = service(self.dir.path());
        }
    }

    /// Applies the event and compares the outcome and the state with the model.
    pub(crate) fn apply(&mut self, event: Event, after: &World) {
        match event {
            Event::Call(call) => {
                let expected = after.outcome.unwrap();
                let mut result = self.call(call, after, 0);
                // A process that searches for a free loop device may open one of the test for a moment. On a busy
                // machine, an operation may end after the deadline.
                let mut attempt = 0;
                let give_up = Instant::now() + LONG_TIMEOUT;
                while let Err(status) = &result {
                    let is_busy = expected != Outcome::Internal && is_loop_device_busy(status);
                    if is_busy && attempt < MAX_RETRIES {
                        attempt += 1;
                    } else if is_still_running(status) && Instant::now() < give_up {
                        attempt = (attempt + 1).min(MAX_RETRIES);
                    } else {
                        break;
                    }
                    let pause = async { tokio::time::sleep(SHORT_TIMEOUT).await };
                    self.runtime.block_on(pause);
                    result = self.call(call, after, attempt);
                }
                let outcome = match &result {
                    Ok(()) => Outcome::Ok,
                    Err(status) => outcome(status),
                };
                assert_eq!(outcome, expected, "{call:?} returned {result:?}");
            }
            Event::Write { mount_point, value } => {
                let file = self.mount_point(mount_point).join("kept");
                fs::write(file, [value]).unwrap();
            }
            Event::ReplaceEntry { mount_point, entry } => self.replace_entry(mount_point, entry),
            Event::MountForeign(mount_point) => {
                let none: Option<&str> = None;
                let kind = Some("tmpfs");
                mount(kind, &self.mount_point(mount_point), kind, MsFlags::empty(), none).unwrap();
            }
            Event::Unmount(mount_point) => {
                umount2(&self.mount_point(mount_point), MntFlags::UMOUNT_NOFOLLOW).unwrap();
            }
            Event::Attach(volume) => self.attach(volume),
            Event::Detach(volume) => {
                let device = self.loops[volume].as_ref().unwrap();
                self.run_shell(&detach_command(device.to_str().unwrap()));
            }
            Event::ForceDetach { volume, unlink } => {
                // The kernel removes the device with its last mount.
                let device = self.loops[volume].as_ref().unwrap();
                self.run_shell(&format!("losetup -d {}", device.display()));
                if unlink {
                    let _ = fs::remove_file(self.link(volume));
                }
            }
            Event::RemoveLink(volume) => fs::remove_file(self.link(volume)).unwrap(),
            Event::RestoreLink(volume) => {
                symlink(self.loops[volume].as_ref().unwrap(), self.link(volume)).unwrap();
            }
            Event::MisdirectLink(volume) => {
                let other = self.loops[1 - volume].as_ref().unwrap();
                symlink(other, self.link(volume)).unwrap();
            }
            Event::ResizeDisk(volume) => {
                let image = OpenOptions::new().write(true).open(self.image(volume));
                image.unwrap().set_len(after.volumes[volume].fs.sizes().1).unwrap();
                if let Some(device) = &self.loops[volume] {
                    self.run_shell(&format!("losetup -c {}", device.display()));
                }
            }
            Event::ReplaceDisk { volume, foreign } => self.make_image(after, volume, foreign),
        }
        self.finish_detach(after);
        verify::verify(self, after);
    }

    /// Removes the links of detached devices, and waits until the kernel removes the devices.
    fn finish_detach(&mut self, after: &World) {
        for volume in 0..VOLUMES {
            if after.volumes[volume].device != Device::Absent {
                continue;
            }
            let _ = fs::remove_file(self.link(volume));
            let Some(device) = self.loops[volume].take() else {
                continue;
            };
            let image = self.image(volume);
            let end = Instant::now() + LONG_TIMEOUT;
            while backing_file(&device).as_ref() == Some(&image) {
                assert!(Instant::now() < end, "{device:?} is not removed");
                self.runtime.block_on(async { tokio::time::sleep(POLL_INTERVAL).await });
            }
        }
    }

    fn replace_entry(&self, mount_point: usize, entry: Entry) {
        let path = self.mount_point(mount_point);
        if let Ok(now) = fs::symlink_metadata(&path) {
            if now.is_dir() {
                fs::remove_dir_all(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
        }
        match entry {
            Entry::Missing => {}
            Entry::Directory | Entry::NonEmptyDirectory => fs::create_dir(&path).unwrap(),
            Entry::File => fs::write(&path, "").unwrap(),
            Entry::NonEmptyFile => fs::write(&path, "unexpected").unwrap(),
            Entry::Symlink => symlink(self.dir.path(), &path).unwrap(),
        }
        if entry == Entry::NonEmptyDirectory {
            fs::write(path.join("unexpected"), "").unwrap();
        }
    }
}

/// Converts a line of the mount table.
pub(crate) fn parse_mount(machine: &Machine, line: &MountLine) -> Mount {
    let is_node = ["devtmpfs", "tmpfs"].contains(&line.kind.as_str()) && line.root != "/";
    if line.kind == "tmpfs" && !is_node {
        return Mount::Foreign;
    }
    let device = match is_node {
        true => format!("/dev{}", line.root),
        false => line.source.clone(),
    };
    let mut loops = machine.loops.iter();
    let volume = loops.position(|path| path.as_deref() == Some(Path::new(&device)));
    let volume = volume.unwrap_or_else(|| panic!("{line:?} does not belong to a volume"));
    let read_only = line.is_read_only();
    match is_node {
        true => Mount::DeviceNode { volume, read_only },
        false => Mount::Filesystem { volume, read_only },
    }
}
