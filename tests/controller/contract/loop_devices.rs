//! Loop devices behind the fake cloud's disks. Needs root, a loop driver and losetup.
#![expect(
    clippy::unwrap_used,
    clippy::future_not_send,
    reason = "helpers of tests fail like tests, and run on one thread"
)]

use std::io::{Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::common::ecs::{attach_to, detach_from, essd, snapshot_of};
use crate::common::memory_cloud::client;
use crate::common::shell::skip;
use crate::common::wait::until;
use crate::contract::world::resize_to;
use diskplugin::base::Deadline;
use diskplugin::linux::{Command, Exec, ProcessExec};
use diskplugin::model::{Category, Disk, DiskId, Gib, InstanceId, SnapshotId};
use ecs::{Client, CreateDisk, DescribeDisks, ResizeMode};
use fake_ecs::{Cloud, Options, StartError, SystemClock, SystemCommands};

/// Whether this machine can run the test. Prints the reason if not.
fn can_loop(test: &str) -> bool {
    let root = nix::unistd::geteuid().is_root();
    let control = Path::new("/dev/loop-control").exists();
    root && control || skip(test, "it needs root and /dev/loop-control")
}

struct Lab {
    home: tempfile::TempDir,
    cloud: Cloud,
    ecs: Client,
    node: InstanceId,
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

async fn start(dir: &Path) -> Result<Cloud, StartError> {
    let dir = format!("--device-dir={}", dir.display());
    let flags = ["--back-with=loop", dir.as_str(), "--nodes=i-one=cn-beijing-a"];
    let options = Options::from_flags(flags).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Cloud::start(&options, Arc::new(SystemClock), Arc::new(SystemCommands), listener).await
}

impl Lab {
    async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let cloud = start(&home.path().join("cloud")).await.unwrap();
        Self {
            ecs: client(&cloud),
            node: "i-one".parse().unwrap(),
            cloud,
            home,
        }
    }

    fn dir(&self) -> PathBuf {
        self.home.path().canonicalize().unwrap().join("cloud")
    }

    async fn disk(&self, id: &DiskId) -> Disk {
        let query = DescribeDisks {
            ids: Some(vec![id.clone()]),
            ..DescribeDisks::default()
        };
        let page = self.ecs.describe_disks(soon(), &query).await.unwrap();
        page.rows.into_iter().next().unwrap()
    }

    async fn until(&self, id: &DiskId, reached: impl Fn(&Disk) -> bool) -> Disk {
        eventually(async || Some(self.disk(id).await).filter(|disk| reached(disk))).await
    }

    async fn create(&self, name: &str, snapshot: Option<&SnapshotId>) -> DiskId {
        let request = CreateDisk {
            category: Category::CloudAuto,
            size: Gib(1),
            snapshot: snapshot.cloned(),
            ..essd(name)
        };
        let id = self.ecs.create_disk(soon(), &request).await.unwrap();
        self.until(&id, Disk::is_free).await;
        id
    }

    async fn begin_attach(&self, disk: &DiskId) {
        let request = attach_to(disk, &self.node);
        self.ecs.attach_disk(soon(), &request).await.unwrap();
    }

    async fn attach(&self, disk: &DiskId) -> PathBuf {
        self.begin_attach(disk).await;
        let row = self.until(disk, |row| row.is_in_use_on(&self.node)).await;
        let link = self.dir().join("nodes/i-one").join(row.serial.unwrap().as_str());
        std::fs::read_link(link).unwrap()
    }

    async fn begin_detach(&self, disk: &DiskId) {
        let request = detach_from(disk, &self.node);
        self.ecs.detach_disk(soon(), &request).await.unwrap();
    }

    async fn detach(&self, disk: &DiskId) {
        self.begin_detach(disk).await;
        self.until(disk, Disk::is_free).await;
    }

    async fn snapshot(&self, disk: &DiskId) -> SnapshotId {
        let request = snapshot_of(disk, "snapshot");
        let id = self.ecs.create_snapshot(soon(), &request).await.unwrap();
        eventually(async || {
            let query = Default::default();
            let page = self.ecs.describe_snapshots(soon(), &query).await.unwrap();
            page.rows.into_iter().find(|row| row.available)
        })
        .await;
        id
    }
}

/// Repeats the query until it returns a value.
async fn eventually<T>(query: impl AsyncFn() -> Option<T>) -> T {
    until("the state is reached", Duration::from_secs(20), query).await
}

/// The loop devices whose file lies in the directory.
fn loops_in(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/sys/block").unwrap();
    entries
        .filter_map(|entry| {
            let file = entry.unwrap().path().join("loop/backing_file");
            std::fs::read_to_string(file).ok()
        })
        .filter(|file| file.starts_with(dir.to_str().unwrap()))
        .collect()
}

fn write(device: &Path, at: u64, text: &[u8]) {
    let mut file = std::fs::OpenOptions::new().write(true).open(device).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(text).unwrap();
    file.sync_all().unwrap();
}

fn read(device: &Path, at: u64, length: usize) -> Vec<u8> {
    let mut file = std::fs::File::open(device).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    let mut bytes = vec![0; length];
    file.read_exact(&mut bytes).unwrap();
    bytes
}

fn sectors(device: &Path) -> u64 {
    let name = device.file_name().unwrap();
    let file = Path::new("/sys/block").join(name).join("size");
    let text = std::fs::read_to_string(file).unwrap();
    text.trim().parse().unwrap()
}

async fn run(command: Command) {
    let output = ProcessExec.run(&command, soon()).await.unwrap();
    command.check_exit_code(output).unwrap();
}

#[tokio::test]
async fn a_disk_is_a_device_that_keeps_its_data() {
    if !can_loop("a_disk_is_a_device_that_keeps_its_data") {
        return;
    }
    let lab = Lab::new().await;
    let disk = lab.create("one", None).await;
    let device = lab.attach(&disk).await;
    let backing = Path::new("/sys/block")
        .join(device.file_name().unwrap())
        .join("loop/backing_file");
    let file = lab.dir().join("disks").join(format!("{}.img", &disk.as_str()[2..]));
    assert_eq!(std::fs::read_to_string(backing).unwrap().trim(), file.to_str().unwrap());
    write(&device, 1 << 20, b"before the cut");
    let snapshot = lab.snapshot(&disk).await;
    write(&device, 1 << 20, b"after the cut!");

    let resize = resize_to(&disk, 2, ResizeMode::Online);
    lab.ecs.resize_disk(soon(), &resize).await.unwrap();
    lab.until(&disk, |row| row.size == Gib(2)).await;
    assert_eq!(sectors(&device), 2 << 21);
    lab.detach(&disk).await;
    assert!(loops_in(&lab.dir()).is_empty());

    let restored = lab.create("two", Some(&snapshot)).await;
    let device = lab.attach(&restored).await;
    assert_eq!(read(&device, 1 << 20, 14), b"before the cut");
    lab.detach(&restored).await;
    let device = lab.attach(&disk).await;
    assert_eq!(read(&device, 1 << 20, 14), b"after the cut!");
    lab.detach(&disk).await;

    lab.ecs.delete_disk(soon(), &disk).await.unwrap();
    eventually(async || (!file.exists()).then_some(())).await;
    lab.cloud.shutdown().await.unwrap();
    lab.cloud.shutdown().await.unwrap();
    assert!(!lab.dir().exists());
    assert!(loops_in(&lab.dir()).is_empty());
}

#[tokio::test]
async fn a_mounted_disk_stays_detaching_until_it_is_unmounted() {
    if !can_loop("a_mounted_disk_stays_detaching_until_it_is_unmounted") {
        return;
    }
    let lab = Lab::new().await;
    let disk = lab.create("one", None).await;
    let device = lab.attach(&disk).await;
    run(Command::new("mkfs.ext4").arg("-q").arg(&device)).await;
    let target = lab.home.path().join("mnt");
    std::fs::create_dir(&target).unwrap();
    run(Command::new("mount").arg(&device).arg(&target)).await;
    lab.begin_detach(&disk).await;
    // Long enough for several tries of the fake cloud.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(lab.disk(&disk).await.status.as_str(), "Detaching");
    assert_eq!(loops_in(&lab.dir()).len(), 1);
    std::fs::write(target.join("still"), "here").unwrap();
    run(Command::new("umount").arg(&target)).await;
    lab.until(&disk, Disk::is_free).await;
    assert!(loops_in(&lab.dir()).is_empty());
    lab.cloud.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_new_start_frees_what_a_crash_left() {
    if !can_loop("a_new_start_frees_what_a_crash_left") {
        return;
    }
    let lab = Lab::new().await;
    let disk = lab.create("one", None).await;
    lab.attach(&disk).await;
    let dir = lab.dir();
    let second = start(&dir).await;
    assert!(second.is_err(), "the directory is held");
    // A crash: nothing is shut down.
    let Lab { home, cloud, ecs, .. } = lab;
    drop((cloud, ecs));
    let cloud = eventually(async || start(&dir).await.ok()).await;
    assert!(loops_in(&dir).is_empty());
    assert_eq!(std::fs::read_dir(dir.join("disks")).unwrap().count(), 0);
    cloud.shutdown().await.unwrap();
    assert!(!dir.exists());
    drop(home);
}

#[tokio::test]
async fn many_disks_attach_at_once() {
    if !can_loop("many_disks_attach_at_once") {
        return;
    }
    let lab = Lab::new().await;
    lab.cloud
        .configure(&serde_json::json!({"rules": {"serial_attach_detach": false}}))
        .unwrap();
    let mut disks = Vec::new();
    for n in 0..12 {
        disks.push(lab.create(&format!("disk-{n}"), None).await);
    }
    for disk in &disks {
        lab.begin_attach(disk).await;
    }
    for disk in &disks {
        lab.until(disk, |row| row.is_in_use_on(&lab.node)).await;
    }
    assert_eq!(loops_in(&lab.dir()).len(), 12);
    lab.cloud.shutdown().await.unwrap();
    assert!(loops_in(&lab.dir()).is_empty());
}
