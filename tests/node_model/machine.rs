//! The same world on a real kernel: loop devices, mounts, a node in this process.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::csi::node::Service;
use diskplugin::host::{Command, Exec, Linux, Processes, Roots};
use diskplugin::node::{Node, Settings};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tokio::runtime::Runtime;

use crate::call::{class, was_snatched};
use crate::loop_device::{attach_command, detach_command};
use crate::see::{self, backing_file};
use crate::world::{Answer, Event, Fs, Layer, PLACES, Under, VOLUMES, World};

const MIB: u64 = 1 << 20;

/// Time that suffices on a busy machine, too.
pub(crate) const AMPLE: Duration = Duration::from_secs(60);
/// Time for what is to be waited for in vain.
pub(crate) const BRIEF: Duration = Duration::from_millis(40);
/// How often in a row that may happen.
const SNATCHED: usize = 5;
const TICK: Duration = Duration::from_millis(1);

/// More than the images of both tests take.
const ROOM: u64 = 1 << 30;

/// What lies on a foreign disk.
pub(crate) const LETTER: &[u8] = b"a letter";
pub(crate) const LETTER_AT: u64 = MIB;

impl Fs {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// A filesystem that it is not.
    pub(crate) fn other(self) -> &'static str {
        match self {
            Self::Ext4 => "xfs",
            Self::Xfs | Self::Btrfs => "ext4",
        }
    }

    /// At first, and grown: as small as the tools and the kernel take it.
    pub(crate) fn sizes(self) -> (u64, u64) {
        match self {
            Self::Ext4 => (8 * MIB, 64 * MIB),
            Self::Xfs => (300 * MIB, 364 * MIB),
            Self::Btrfs => (256 * MIB, 320 * MIB),
        }
    }

    /// Statistics above this are those of a filesystem that has grown.
    pub(crate) fn grown(self) -> u64 {
        let (small, big) = self.sizes();
        let log = match self {
            Self::Xfs => XFS_LOG,
            Self::Ext4 | Self::Btrfs => 0,
        };
        small.midpoint(big) - log
    }
}

/// What xfs takes for its log, and counts as no part of the filesystem.
const XFS_LOG: u64 = 64 * MIB;

/// The real world. Dropping it takes everything down.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) dir: tempfile::TempDir,
    /// Names the volumes, so that no two cases share one.
    case: u64,
    pub(crate) service: Service,
    /// Whether the node starts anew before each call.
    restarts: bool,
    pub(crate) loops: [Option<PathBuf>; VOLUMES],
    /// Of filesystems that have been seen.
    pub(crate) uuids: [Option<[u8; 16]>; VOLUMES],
    pub(crate) runtime: Runtime,
}

/// Where the images lie: in memory where there is room, because each step waits for the disk otherwise.
fn ground() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let free = nix::sys::statvfs::statvfs(&memory)
        .map_or(0, |found| found.blocks_available() * found.fragment_size());
    match free > ROOM {
        true => memory,
        false => std::env::temp_dir(),
    }
}

/// A node that knows nothing but its settings.
fn service(devices: &Path) -> Service {
    let exec: Arc<dyn Exec> = Arc::new(Processes);
    let host = Arc::new(Linux::new(Arc::clone(&exec), Roots::default()));
    let settings = Settings {
        id: "i-test".parse().unwrap(),
        zone: "cn-beijing-c".parse().unwrap(),
        max_volumes: None,
        categories: Vec::new(),
        types: Default::default(),
        device_dir: Some(devices.to_owned()),
        kubelet_dir: devices.parent().unwrap().to_owned(),
        state_dir: devices.with_file_name("state"),
    };
    Service::new(Arc::new(Node::new(host, exec, settings)))
}

impl Machine {
    pub(crate) fn new(world: &World, case: u64, restarts: bool) -> Self {
        let dir = tempfile::tempdir_in(ground()).unwrap();
        for name in ["devices", "disks", "places"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut machine = Self {
            service: service(&dir.path().join("devices")),
            dir,
            case,
            restarts,
            loops: [const { None }; VOLUMES],
            uuids: [None; VOLUMES],
            runtime,
        };
        for volume in 0..VOLUMES {
            machine.make_image(world, volume, false);
            if matches!(
                world.volumes[volume].device,
                crate::world::Device::There { .. }
            ) {
                machine.attach(volume);
            }
        }
        machine
    }

    pub(crate) fn place(&self, place: usize) -> PathBuf {
        self.dir.path().join("places").join(format!("p{place}"))
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

    fn sh(&self, line: &str) -> String {
        let command = Command::new("sh").args(["-ec", line]);
        let ran = Processes.run(&command, Deadline::after(AMPLE));
        let output = self.runtime.block_on(ran);
        command
            .success(output.unwrap())
            .unwrap()
            .stdout
            .trim()
            .to_owned()
    }

    fn make_image(&mut self, world: &World, volume: usize, foreign: bool) {
        let file = File::create(self.image(volume)).unwrap();
        file.set_len(world.volumes[volume].fs.sizes().0).unwrap();
        if foreign {
            file.write_all_at(LETTER, LETTER_AT).unwrap();
        }
        self.uuids[volume] = None;
    }

    fn attach(&mut self, volume: usize) {
        let device = self.sh(&attach_command(&self.image(volume)));
        symlink(&device, self.link(volume)).unwrap();
        self.loops[volume] = Some(device.into());
    }

    /// The node of a call: one that knows nothing of the calls before, where it starts anew.
    pub(crate) fn begin_call(&mut self) {
        if self.restarts {
            self.service = service(&self.dir.path().join("devices"));
        }
    }

    /// Does to the real world what happened to the model, and what the model says about a call.
    pub(crate) fn apply(&mut self, event: Event, after: &World) {
        match event {
            Event::Call(call) => {
                let expected = after.answer.unwrap();
                let mut answer = self.call(call, after);
                // Whoever looks for a free loop device on this machine may have ours for a moment.
                for _ in 0..SNATCHED {
                    if expected != Answer::Failed && answer.as_ref().is_err_and(was_snatched) {
                        let pause = async { tokio::time::sleep(BRIEF).await };
                        self.runtime.block_on(pause);
                        answer = self.call(call, after);
                    }
                }
                let is = match &answer {
                    Ok(()) => Answer::Ok,
                    Err(status) => class(status),
                };
                assert_eq!(is, expected, "{call:?} answers {answer:?}");
            }
            Event::Write { place, value } => {
                let file = self.place(place).join("kept");
                fs::write(file, [value]).unwrap();
            }
            Event::Put { place, under } => self.put(place, under),
            Event::MountForeign { place } => {
                let none: Option<&str> = None;
                let kind = Some("tmpfs");
                mount(kind, &self.place(place), kind, MsFlags::empty(), none).unwrap();
            }
            Event::Unmount { place } => {
                umount2(&self.place(place), MntFlags::UMOUNT_NOFOLLOW).unwrap();
            }
            Event::Attach { volume } => self.attach(volume),
            Event::Detach { volume } => {
                let device = self.loops[volume].as_ref().unwrap();
                self.sh(&detach_command(device.to_str().unwrap()));
            }
            Event::TearOut { volume, unlink } => {
                // It leaves with its last mount.
                let device = self.loops[volume].as_ref().unwrap();
                self.sh(&format!("losetup -d {}", device.display()));
                if unlink {
                    let _ = fs::remove_file(self.link(volume));
                }
            }
            Event::Unlink { volume } => fs::remove_file(self.link(volume)).unwrap(),
            Event::Relink { volume } => {
                symlink(self.loops[volume].as_ref().unwrap(), self.link(volume)).unwrap();
            }
            Event::Mislead { volume } => {
                let other = self.loops[1 - volume].as_ref().unwrap();
                symlink(other, self.link(volume)).unwrap();
            }
            Event::Grow { volume } => {
                let image = OpenOptions::new().write(true).open(self.image(volume));
                image
                    .unwrap()
                    .set_len(after.volumes[volume].fs.sizes().1)
                    .unwrap();
                if let Some(device) = &self.loops[volume] {
                    self.sh(&format!("losetup -c {}", device.display()));
                }
            }
            Event::Replace { volume, foreign } => self.make_image(after, volume, foreign),
        }
        self.follow(after);
        see::compare(self, after);
    }

    /// What the cloud does behind a device that has gone.
    fn follow(&mut self, after: &World) {
        for volume in 0..VOLUMES {
            if after.volumes[volume].device != crate::world::Device::Absent {
                continue;
            }
            let _ = fs::remove_file(self.link(volume));
            let Some(device) = self.loops[volume].take() else {
                continue;
            };
            let image = self.image(volume);
            let end = tokio::time::Instant::now() + AMPLE;
            while backing_file(&device).as_ref() == Some(&image) {
                assert!(tokio::time::Instant::now() < end, "{device:?} stays");
                self.runtime
                    .block_on(async { tokio::time::sleep(TICK).await });
            }
        }
    }

    fn put(&self, place: usize, under: Under) {
        let path = self.place(place);
        if let Ok(now) = fs::symlink_metadata(&path) {
            if now.is_dir() {
                fs::remove_dir_all(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
        }
        match under {
            Under::Missing => {}
            Under::Dir | Under::FullDir => fs::create_dir(&path).unwrap(),
            Under::File => fs::write(&path, "").unwrap(),
            Under::FullFile => fs::write(&path, "stray").unwrap(),
            Under::Symlink => symlink(self.dir.path(), &path).unwrap(),
        }
        if under == Under::FullDir {
            fs::write(path.join("stray"), "").unwrap();
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        for place in 0..PLACES {
            while umount2(&self.place(place), MntFlags::UMOUNT_NOFOLLOW).is_ok() {}
        }
        for (volume, device) in self.loops.iter().enumerate() {
            // A device that was torn out has gone with its last mount, and may be somebody else's by now.
            let image = self.image(volume);
            let Some(device) = device.as_ref().filter(|d| backing_file(d) == Some(image)) else {
                continue;
            };
            let freed = format!("blockdev --setrw {0}; losetup -d {0}", device.display());
            let command = Command::new("sh").args(["-c", &freed]);
            // Best effort: the test may have failed already.
            let _ = self
                .runtime
                .block_on(async { Processes.run(&command, Deadline::after(AMPLE)).await });
        }
    }
}

/// Which volume a device is of.
pub(crate) fn volume_of(machine: &Machine, device: &Path) -> Option<usize> {
    machine
        .loops
        .iter()
        .position(|one| one.as_deref() == Some(device))
}

/// The layer that a line of the mount table is.
pub(crate) fn layer(machine: &Machine, line: &see::Line) -> Layer {
    let is_node = ["devtmpfs", "tmpfs"].contains(&line.kind.as_str()) && line.root != "/";
    if line.kind == "tmpfs" && !is_node {
        return Layer::Foreign;
    }
    let device = match is_node {
        true => format!("/dev{}", line.root),
        false => line.source.clone(),
    };
    let volume = volume_of(machine, Path::new(&device));
    let volume = volume.unwrap_or_else(|| panic!("{line:?} is of no volume"));
    let read_only = line.read_only;
    match is_node {
        true => Layer::Node { volume, read_only },
        false => Layer::Fs { volume, read_only },
    }
}
