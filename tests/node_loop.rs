//! The node on real block devices: loop devices stand for attached disks, everything else is real.
//! Needs root, losetup and the filesystems' tools.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::csi::node::Service;
use diskplugin::csi::proto::node_server::Node as _;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::{
    CapacityRange, NodeExpandVolumeRequest, NodeGetVolumeStatsRequest, NodePublishVolumeRequest,
    NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, VolumeCapability,
};
use diskplugin::host::{Command, Exec, Linux, Processes, Roots};
use diskplugin::node::{Node, Settings};
use tonic::{Code, Request, Status};

const MIB: u64 = 1 << 20;

/// btrfs wants the most room.
const SIZE: u64 = 320 * MIB;

/// Time that suffices on a busy machine, too.
const AMPLE: Duration = Duration::from_secs(60);

/// Time for what is to be waited for in vain.
const BRIEF: Duration = Duration::from_secs(2);

/// Runs a command and returns what it printed.
async fn sh(line: &str) -> String {
    let command = Command::new("sh").args(["-ec", line]);
    let deadline = Deadline::after(Duration::from_secs(60));
    let output = Processes.run(&command, deadline).await.unwrap();
    command.success(output).unwrap().stdout.trim().to_owned()
}

/// Whether this machine can run these tests; aloud when it cannot.
async fn can_run() -> bool {
    let probe = "test $(id -u) = 0 && f=$(mktemp) && truncate -s 1M $f && d=$(losetup -f --show $f) \
         && losetup -d $d && rm $f && command -v mkfs.ext4 mkfs.xfs mkfs.btrfs sfdisk";
    let command = Command::new("sh").args(["-ec", probe]);
    let deadline = Deadline::after(Duration::from_secs(20));
    let reason = match Processes.run(&command, deadline).await {
        Ok(output) if output.code == Some(0) => return true,
        Ok(output) => format!("root, loop devices and tools are needed: {}", output.stderr),
        Err(error) => error.to_string(),
    };
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!ci, "nothing is skipped in CI: {reason}");
    eprintln!("SKIPPED: node_loop because {reason}");
    false
}

/// A machine with one attached disk. Dropping it takes everything down, also in a panic.
struct World {
    dir: tempfile::TempDir,
    serial: String,
    service: Service,
}

impl World {
    /// An attached blank disk; the serial must differ from test to test.
    async fn new(serial: &str) -> Self {
        let world = Self::without_device(serial);
        world.attach().await;
        world
    }

    fn without_device(serial: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("devices")).unwrap();
        let exec: Arc<dyn Exec> = Arc::new(Processes);
        let host = Arc::new(Linux::new(Arc::clone(&exec), Roots::default()));
        let settings = Settings {
            id: "i-test".parse().unwrap(),
            zone: "cn-beijing-c".parse().unwrap(),
            max_volumes: None,
            categories: Vec::new(),
            device_dir: Some(dir.path().join("devices")),
        };
        let world = Self {
            service: Service::new(Arc::new(Node::new(host, exec, settings))),
            serial: serial.to_owned(),
            dir,
        };
        let image = fs::File::create(world.image()).unwrap();
        image.set_len(SIZE).unwrap();
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn image(&self) -> PathBuf {
        self.path(&format!("{}.img", self.serial))
    }

    fn link(&self) -> PathBuf {
        self.path("devices").join(&self.serial)
    }

    /// What the fake cloud does when it attaches.
    async fn attach(&self) -> String {
        let device = sh(&format!("losetup -f --show {}", self.image().display())).await;
        symlink(&device, self.link()).unwrap();
        device
    }

    fn device(&self) -> PathBuf {
        fs::read_link(self.link()).unwrap()
    }

    async fn detach(&self) {
        sh(&format!("losetup -d {}", self.device().display())).await;
        fs::remove_file(self.link()).unwrap();
    }

    fn volume(&self) -> String {
        format!("d-{}", self.serial)
    }

    /// What is on the disk.
    async fn hash(&self) -> String {
        let device = self.device();
        sh(&format!("sync {0}; sha256sum < {0}", device.display())).await
    }

    fn stage_request(&self, capability: &VolumeCapability) -> NodeStageVolumeRequest {
        NodeStageVolumeRequest {
            volume_id: self.volume(),
            staging_target_path: self.text("staging"),
            volume_capability: Some(capability.clone()),
            ..Default::default()
        }
    }

    async fn stage(&self, capability: &VolumeCapability) -> Result<(), Status> {
        self.stage_within(AMPLE, capability).await
    }

    async fn stage_within(
        &self,
        time: Duration,
        capability: &VolumeCapability,
    ) -> Result<(), Status> {
        let mut request = Request::new(self.stage_request(capability));
        request.set_timeout(time);
        self.service.node_stage_volume(request).await.map(drop)
    }

    async fn publish(
        &self,
        capability: &VolumeCapability,
        target: &str,
        readonly: bool,
    ) -> Result<(), Status> {
        let request = NodePublishVolumeRequest {
            volume_id: self.volume(),
            staging_target_path: self.text("staging"),
            target_path: self.text(target),
            volume_capability: Some(capability.clone()),
            readonly,
            ..Default::default()
        };
        let answer = self.service.node_publish_volume(Request::new(request));
        answer.await.map(drop)
    }

    async fn unpublish(&self, target: &str) -> Result<(), Status> {
        let request = NodeUnpublishVolumeRequest {
            volume_id: self.volume(),
            target_path: self.text(target),
        };
        let answer = self.service.node_unpublish_volume(Request::new(request));
        answer.await.map(drop)
    }

    async fn unstage(&self) -> Result<(), Status> {
        let request = NodeUnstageVolumeRequest {
            volume_id: self.volume(),
            staging_target_path: self.text("staging"),
        };
        let answer = self.service.node_unstage_volume(Request::new(request));
        answer.await.map(drop)
    }

    async fn expand(&self, path: &str, required: u64) -> Result<i64, Status> {
        self.expand_within(AMPLE, path, required).await
    }

    async fn expand_within(
        &self,
        time: Duration,
        path: &str,
        required: u64,
    ) -> Result<i64, Status> {
        let mut request = Request::new(NodeExpandVolumeRequest {
            volume_id: self.volume(),
            volume_path: self.text(path),
            capacity_range: Some(CapacityRange {
                required_bytes: i64::try_from(required).unwrap(),
                limit_bytes: 0,
            }),
            ..Default::default()
        });
        request.set_timeout(time);
        let answer = self.service.node_expand_volume(request).await?;
        Ok(answer.into_inner().capacity_bytes)
    }

    /// Total bytes as statistics tell them.
    async fn total(&self, path: &str) -> Result<u64, Status> {
        let request = NodeGetVolumeStatsRequest {
            volume_id: self.volume(),
            volume_path: self.text(path),
            ..Default::default()
        };
        let answer = self.service.node_get_volume_stats(Request::new(request));
        Ok(u64::try_from(answer.await?.into_inner().usage[0].total).unwrap())
    }

    async fn grow_device(&self, size: u64) {
        let image = fs::OpenOptions::new().write(true).open(self.image());
        image.unwrap().set_len(size).unwrap();
        sh(&format!("losetup -c {}", self.device().display())).await;
    }
}

impl Drop for World {
    #[expect(
        clippy::disallowed_methods,
        reason = "a destructor has no runtime to await in"
    )]
    fn drop(&mut self) {
        let dir = self.dir.path().display();
        let script = format!(
            "for m in $(awk '$5 ~ \"^{dir}/\" {{print $5}}' /proc/self/mountinfo | sort -r); do umount $m; done
             for d in $(losetup -n -l -O NAME,BACK-FILE | awk '$2 ~ \"^{dir}/\" {{print $1}}'); do blockdev --setrw $d; losetup -d $d; done"
        );
        let status = std::process::Command::new("sh")
            .args(["-c", &script])
            .status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("cannot take down {dir}");
        }
    }
}

fn mount_capability(fs_type: &str, mode: Mode) -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: fs_type.to_owned(),
            ..Default::default()
        })),
        access_mode: Some(AccessMode { mode: mode.into() }),
    }
}

fn writer(fs_type: &str) -> VolumeCapability {
    mount_capability(fs_type, Mode::SingleNodeWriter)
}

fn block() -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Block(BlockVolume {})),
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
    }
}

fn is_mounted(path: &Path) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table
        .lines()
        .any(|line| line.split(' ').nth(4) == path.to_str())
}

/// Stage a blank disk, write, take it all down, stage again, read.
async fn content_survives(fs_type: &str, serial: &str) {
    if !can_run().await {
        return;
    }
    let world = World::new(serial).await;
    let capability = writer(fs_type);
    for round in 0..2 {
        world.stage(&capability).await.unwrap();
        world.stage(&capability).await.unwrap();
        world.publish(&capability, "target", false).await.unwrap();
        world.publish(&capability, "target", false).await.unwrap();
        let file = world.path("target/file");
        if round == 0 {
            fs::write(&file, fs_type).unwrap();
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), fs_type);
        assert!(world.total("target").await.unwrap() > SIZE / 2);
        world.unpublish("target").await.unwrap();
        world.unpublish("target").await.unwrap();
        assert!(!world.path("target").exists());
        world.unstage().await.unwrap();
        world.unstage().await.unwrap();
        assert!(!is_mounted(&world.path("staging")));
        world.detach().await;
        world.attach().await;
    }
}

#[tokio::test]
async fn content_survives_on_ext4() {
    content_survives("ext4", "nodeloop01").await;
}

#[tokio::test]
async fn content_survives_on_ext3() {
    content_survives("ext3", "nodeloop02").await;
}

#[tokio::test]
async fn content_survives_on_xfs() {
    content_survives("xfs", "nodeloop03").await;
}

#[tokio::test]
async fn content_survives_on_btrfs() {
    content_survives("btrfs", "nodeloop04").await;
}

/// The disk holds something else: staging is refused with these words, and no byte changes.
async fn is_refused_untouched(world: &World, fs_type: &str, code: Code, words: &[&str]) {
    let before = world.hash().await;
    let error = world.stage(&writer(fs_type)).await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    for word in words {
        assert!(error.message().contains(word), "{word}: {error}");
    }
    assert_eq!(world.hash().await, before, "the disk was written to");
    assert!(!is_mounted(&world.path("staging")));
}

#[tokio::test]
async fn unknown_data_is_never_formatted_over() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop11").await;
    let device = world.device();
    for at in [0, 3 * MIB, SIZE - 1] {
        sh(&format!(
            "dd if=/dev/zero of={0} bs=1M count=8 status=none; printf x | dd of={0} bs=1 seek={at} status=none",
            device.display()
        ))
        .await;
        let words = ["neither blank", "unknown kind", &world.serial];
        is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
    }
}

#[tokio::test]
async fn a_filesystem_whose_head_was_wiped_is_never_formatted_over() {
    if !can_run().await {
        return;
    }
    for (fs_type, serial) in [
        ("ext4", "nodeloop46"),
        ("xfs", "nodeloop47"),
        ("btrfs", "nodeloop48"),
    ] {
        let world = World::new(serial).await;
        sh(&format!(
            "mkfs.{fs_type} -q {0}; dd if=/dev/zero of={0} bs=1M count=4 conv=notrunc,fsync status=none",
            world.device().display()
        ))
        .await;
        let words = ["neither blank", "unknown kind", &world.serial];
        // What blkid may know by a mirror that lies beyond the head is another refusal.
        let words = if fs_type == "btrfs" {
            &words[2..]
        } else {
            &words
        };
        is_refused_untouched(&world, "ext4", Code::FailedPrecondition, words).await;
    }
}

#[tokio::test]
async fn a_wiped_head_before_files_alone_is_never_formatted_over() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop49").await;
    sh(&format!(
        "dd if=/dev/urandom of={} bs=1M seek=100 count=20 conv=notrunc,fsync status=none",
        world.device().display()
    ))
    .await;
    let words = ["neither blank", "unknown kind", &world.serial];
    is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn another_filesystem_is_named_and_left_alone() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop12").await;
    sh(&format!("mkfs.xfs -q {}", world.device().display())).await;
    let words = ["has xfs", "ext4 was asked for"];
    is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn foreign_volumes_are_named_and_left_alone() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop13").await;
    let device = world.device();
    sh(&format!("mkswap {} 2>&1", device.display())).await;
    let words = ["it holds swap"];
    is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn a_partition_table_is_named_and_left_alone() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop14").await;
    for label in ["gpt", "dos"] {
        sh(&format!(
            "printf 'label: {label}\n,16M\n' | sfdisk -q --no-reread --wipe always {} 2>&1",
            world.device().display()
        ))
        .await;
        let table = format!("a {label} partition table");
        is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &[&table]).await;
    }
}

#[tokio::test]
async fn a_link_to_another_disk_is_refused_and_neither_disk_is_touched() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop15").await;
    let other = World::new("nodeloop16").await;
    let own = world.device();
    fs::remove_file(world.link()).unwrap();
    symlink(other.device(), world.link()).unwrap();
    let words = ["stale", "nodeloop16", "d-nodeloop15"];
    is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
    fs::remove_file(world.link()).unwrap();
    symlink(own, world.link()).unwrap();
}

#[tokio::test]
async fn a_disk_that_answers_twice_is_refused() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop17").await;
    let twin = sh(&format!("losetup -f --show {}", world.image().display())).await;
    let own = world.device();
    let words = ["more than one device", &twin, own.to_str().unwrap()];
    is_refused_untouched(&world, "ext4", Code::FailedPrecondition, &words).await;
}

#[tokio::test]
async fn a_disk_that_does_not_come_is_waited_for_and_told() {
    if !can_run().await {
        return;
    }
    let world = World::without_device("nodeloop18");
    let error = world
        .stage_within(BRIEF, &writer("ext4"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded);
    assert!(error.message().contains("serial nodeloop18"), "{error}");
    let capability = writer("ext4");
    let (staged, _device) = tokio::join!(world.stage(&capability), world.attach());
    staged.unwrap();
}

#[tokio::test]
async fn xfs_grows_while_it_is_published() {
    grows_online("xfs", "nodeloop21").await;
}

#[tokio::test]
async fn btrfs_grows_while_it_is_published() {
    grows_online("btrfs", "nodeloop22").await;
}

async fn grows_online(fs_type: &str, serial: &str) {
    if !can_run().await {
        return;
    }
    let world = World::new(serial).await;
    let capability = writer(fs_type);
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    let before = world.total("target").await.unwrap();
    let error = world
        .expand_within(BRIEF, "target", 2 * SIZE)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::DeadlineExceeded, "{error}");
    world.grow_device(2 * SIZE).await;
    for _ in 0..2 {
        let size = world.expand("target", 2 * SIZE).await.unwrap();
        assert_eq!(u64::try_from(size), Ok(2 * SIZE));
    }
    let after = world.total("target").await.unwrap();
    assert!(after - before > SIZE * 3 / 4, "{before} {after}");
}

#[tokio::test]
async fn ext_grows_while_mounted_or_says_which_right_is_missing() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop23").await;
    world.stage(&writer("ext4")).await.unwrap();
    world.grow_device(2 * SIZE).await;
    match world.expand("staging", 2 * SIZE).await {
        Ok(size) => assert_eq!(u64::try_from(size), Ok(2 * SIZE)),
        Err(error) => assert!(error.message().contains("CAP_SYS_RESOURCE"), "{error}"),
    }
}

#[tokio::test]
async fn what_was_grown_offline_is_grown_when_staged() {
    if !can_run().await {
        return;
    }
    for (fs_type, serial) in [
        ("ext4", "nodeloop24"),
        ("ext3", "nodeloop25"),
        ("xfs", "nodeloop26"),
        ("btrfs", "nodeloop27"),
    ] {
        let world = World::new(serial).await;
        let capability = writer(fs_type);
        world.stage(&capability).await.unwrap();
        fs::write(world.path("staging/file"), fs_type).unwrap();
        let before = world.total("staging").await.unwrap();
        world.unstage().await.unwrap();
        world.grow_device(2 * SIZE).await;
        world.stage(&capability).await.unwrap();
        let after = world.total("staging").await.unwrap();
        assert!(after - before > SIZE * 3 / 4, "{fs_type}: {before} {after}");
        let text = fs::read_to_string(world.path("staging/file")).unwrap();
        assert_eq!(text, fs_type);
    }
}

#[tokio::test]
async fn a_device_is_published_as_a_device() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop31").await;
    world.stage(&block()).await.unwrap();
    for _ in 0..2 {
        world.publish(&block(), "target", false).await.unwrap();
    }
    assert_eq!(world.total("target").await.unwrap(), SIZE);
    fs::OpenOptions::new()
        .write(true)
        .open(world.path("target"))
        .and_then(|mut node| std::io::Write::write_all(&mut node, &[7; 4096]))
        .unwrap();
    world.grow_device(2 * SIZE).await;
    let size = world.expand("target", 2 * SIZE).await.unwrap();
    assert_eq!(u64::try_from(size), Ok(2 * SIZE));
    let error = world
        .unstage()
        .await
        .map(|()| is_mounted(&world.path("target")));
    assert!(
        error.is_ok_and(|still| still),
        "nothing is mounted at staging"
    );
    world.unpublish("target").await.unwrap();
    world.unstage().await.unwrap();
    assert!(!world.path("target").exists());
    sync(&world).await;
    assert_eq!(fs::read(world.image()).unwrap()[..4096], [7; 4096]);
}

async fn sync(world: &World) {
    sh(&format!("sync {}", world.device().display())).await;
}

#[tokio::test]
async fn a_device_that_is_published_read_only_cannot_be_written() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop32").await;
    world.stage(&block()).await.unwrap();
    world.publish(&block(), "target", true).await.unwrap();
    let write = |path: PathBuf| {
        let node = fs::OpenOptions::new().write(true).open(path);
        // The kernel may open a read-only device for writing; it takes nothing then.
        node.and_then(|mut node| {
            std::io::Write::write_all(&mut node, &[7; 4096])?;
            node.sync_all()
        })
    };
    assert!(write(world.path("target")).is_err());
    let error = world.publish(&block(), "second", false).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    world.unpublish("target").await.unwrap();
    world.publish(&block(), "second", false).await.unwrap();
    assert!(write(world.path("second")).is_ok());
}

#[tokio::test]
async fn read_only_is_read_only_everywhere() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop33").await;
    let reader = mount_capability("ext4", Mode::SingleNodeReaderOnly);
    let words = ["blank", "never formats"];
    let before = world.hash().await;
    let error = world.stage(&reader).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    for word in words {
        assert!(error.message().contains(word), "{error}");
    }
    assert_eq!(world.hash().await, before);

    world.stage(&writer("ext4")).await.unwrap();
    world
        .publish(&writer("ext4"), "target", true)
        .await
        .unwrap();
    assert!(fs::write(world.path("target/file"), "x").is_err());
    fs::write(world.path("staging/file"), "x").unwrap();
    let error = world
        .publish(&writer("ext4"), "target", false)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists, "{error}");
    let error = world.stage(&reader).await.unwrap_err();
    assert_eq!(error.code(), Code::AlreadyExists, "{error}");
    world.unpublish("target").await.unwrap();
    world.unstage().await.unwrap();

    world.stage(&reader).await.unwrap();
    let error = world
        .publish(&writer("ext4"), "target", false)
        .await
        .unwrap_err();
    assert!(error.message().contains("staged read-only"), "{error}");
    world.publish(&reader, "target", false).await.unwrap();
    for place in ["staging/file", "target/file"] {
        assert!(fs::write(world.path(place), "y").is_err(), "{place}");
    }
}

#[tokio::test]
async fn one_writer_means_one_target() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop34").await;
    let single = mount_capability("ext4", Mode::SingleNodeSingleWriter);
    world.stage(&single).await.unwrap();
    world.publish(&single, "target", false).await.unwrap();
    let error = world.publish(&single, "second", false).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(!world.path("second").exists());
    let several = mount_capability("ext4", Mode::SingleNodeMultiWriter);
    world.publish(&several, "second", false).await.unwrap();
}

#[tokio::test]
async fn what_is_published_is_not_unstaged_and_what_is_mounted_is_not_deleted() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop35").await;
    let capability = writer("ext4");
    world.stage(&capability).await.unwrap();
    world.publish(&capability, "target", false).await.unwrap();
    let error = world.unstage().await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(error.message().contains(&world.text("target")), "{error}");

    let other = World::new("nodeloop36").await;
    let request = NodeUnpublishVolumeRequest {
        volume_id: other.volume(),
        target_path: world.text("target"),
    };
    let error = other
        .service
        .node_unpublish_volume(Request::new(request))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
    assert!(is_mounted(&world.path("target")));
}

#[tokio::test]
async fn an_id_that_no_disk_has_takes_nothing_off() {
    if !can_run().await {
        return;
    }
    for (serial, capability) in [
        ("nodeloop41", writer("ext4")),
        ("nodeloop42", writer("btrfs")),
        ("nodeloop43", block()),
    ] {
        let world = World::new(serial).await;
        world.stage(&capability).await.unwrap();
        world.publish(&capability, "target", false).await.unwrap();
        let volume_id = "d-somebodyelse".to_owned();
        let request = NodeUnpublishVolumeRequest {
            volume_id: volume_id.clone(),
            target_path: world.text("target"),
        };
        let request = Request::new(request);
        let error = world.service.node_unpublish_volume(request).await;
        let error = error.map(drop).unwrap_err();
        assert_eq!(error.code(), Code::FailedPrecondition, "{error}");
        assert!(
            error
                .message()
                .contains(&world.image().display().to_string()),
            "{error}"
        );
        assert!(is_mounted(&world.path("target")), "{error}");
        if capability != block() {
            let request = Request::new(NodeUnstageVolumeRequest {
                volume_id,
                staging_target_path: world.text("staging"),
            });
            let error = world.service.node_unstage_volume(request).await;
            assert_eq!(error.unwrap_err().code(), Code::FailedPrecondition);
            assert!(is_mounted(&world.path("staging")));
        }
        world.unpublish("target").await.unwrap();
        world.unstage().await.unwrap();
    }
}

#[tokio::test]
async fn a_disk_whose_link_is_gone_while_it_is_mounted_still_comes_off() {
    if !can_run().await {
        return;
    }
    for (serial, capability) in [("nodeloop44", writer("ext4")), ("nodeloop45", block())] {
        let world = World::new(serial).await;
        world.stage(&capability).await.unwrap();
        world.publish(&capability, "target", false).await.unwrap();
        world.detach().await;
        world.unpublish("target").await.unwrap();
        world.unstage().await.unwrap();
        assert!(!world.path("target").exists() && !is_mounted(&world.path("staging")));
    }
}

#[tokio::test]
async fn targets_that_are_links_or_hold_files_are_left_alone() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop37").await;
    let capability = writer("ext4");
    symlink(world.dir.path(), world.path("staging")).unwrap();
    let error = world.stage(&capability).await.unwrap_err();
    assert!(error.message().contains("a symlink"), "{error}");
    fs::remove_file(world.path("staging")).unwrap();

    fs::create_dir(world.path("target")).unwrap();
    fs::write(world.path("target/keep"), "x").unwrap();
    assert!(world.unpublish("target").await.is_err());
    assert!(world.path("target/keep").exists());
}

#[tokio::test]
async fn the_kernel_refuses_a_wrong_option_and_nothing_is_left() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop38").await;
    let mut capability = writer("ext4");
    if let Some(AccessType::Mount(mount)) = &mut capability.access_type {
        mount.mount_flags = vec!["nonsense=7".to_owned()];
    }
    let error = world.stage(&capability).await.unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument, "{error}");
    assert!(error.message().contains("nonsense=7"), "{error}");
    assert!(!world.path("staging").exists());
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop39").await;
    fs::create_dir(world.path("empty")).unwrap();
    let code = |error: Status| error.code();
    assert_eq!(
        world.total("empty").await.map_err(code),
        Err(Code::NotFound)
    );
    assert_eq!(
        world.total("nowhere").await.map_err(code),
        Err(Code::NotFound)
    );
    assert_eq!(
        world.expand("empty", 0).await.map_err(code),
        Err(Code::NotFound)
    );
    let request = NodeGetVolumeStatsRequest {
        volume_id: world.volume(),
        volume_path: "some/path".to_owned(),
        ..Default::default()
    };
    let answer = world.service.node_get_volume_stats(Request::new(request));
    assert_eq!(answer.await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn a_mounted_path_with_a_space_is_found_again() {
    if !can_run().await {
        return;
    }
    let world = World::new("nodeloop40").await;
    let capability = writer("ext4");
    world.stage(&capability).await.unwrap();
    for _ in 0..2 {
        world.publish(&capability, "a target", false).await.unwrap();
    }
    world.unpublish("a target").await.unwrap();
    assert!(!world.path("a target").exists());
}
