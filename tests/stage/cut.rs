//! A mkfs that is cut off: after each number of writes at which the disk looks different. It is finished where the journal
//! proves that the disk was ours and blank, and nowhere else.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use diskplugin::base::Deadline;
use diskplugin::host::{Command, Exec, ExecError, Output, Processes};
use diskplugin::model::Filesystem::{self, Btrfs, Ext3, Ext4, Xfs};
use diskplugin::node::Access;

use super::kit::{AMPLE, SIZE, World, can_run, is_mounted, sh, told};

/// Kills mkfs at a write; other commands run as they are.
#[derive(Debug)]
struct Cut {
    at: u32,
}

#[async_trait]
impl Exec for Cut {
    async fn run(&self, command: &Command, deadline: Deadline) -> Result<Output, ExecError> {
        if !command.program().to_string_lossy().starts_with("mkfs.") {
            return Processes.run(command, deadline).await;
        }
        let inject = format!("inject=pwrite64:signal=KILL:when={}", self.at);
        let cut = Command::new("strace")
            .args(["-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e"])
            .arg(inject)
            .arg(command.program())
            .args(command.arguments().to_vec());
        Processes.run(&cut, deadline).await
    }
}

/// The command that finds fault with a filesystem, and changes nothing.
fn check(filesystem: Filesystem) -> &'static str {
    match filesystem {
        Ext4 | Ext3 => "e2fsck -fn",
        Xfs => "xfs_repair -n",
        Btrfs => "btrfs check --readonly",
    }
}

/// Begins to stage, and is cut off in mkfs.
async fn cut_off(world: &World, filesystem: Filesystem, at: u32) -> String {
    let node = world.node_with(Arc::new(Cut { at }));
    let request = world.request(filesystem);
    let staged = node.stage(request, Deadline::after(AMPLE)).await;
    assert!(!is_mounted(&world.path("staging")));
    assert!(!world.path("staging").exists());
    told(staged.unwrap_err())
}

/// Writes after which the disk looks different, as found by trying all of them.
fn instants(filesystem: Filesystem) -> &'static [u32] {
    match filesystem {
        Ext4 | Ext3 => &[1, 5, 10, 40],
        Xfs => &[1, 4, 60],
        Btrfs => &[6, 9, 60],
    }
}

async fn is_finished(filesystem: Filesystem, serial: &str) {
    if !can_run().await {
        return;
    }
    for &at in instants(filesystem) {
        let world = World::with_disk(&format!("{serial}x{at}")).await;
        let error = cut_off(&world, filesystem, at).await;
        assert!(error.contains("TOOL_FAILED"), "{at}: {error}");
        assert_eq!(world.records(), 1, "{at}");
        world.stage(filesystem).await.unwrap();
        assert_eq!(world.records(), 0, "{at}");
        std::fs::write(world.path("staging/file"), "x").unwrap();
        world.unstage().await;
        sh(&format!("{} {}", check(filesystem), world.device())).await;
    }
}

#[tokio::test]
async fn an_ext4_that_was_cut_off_is_finished() {
    is_finished(Ext4, "cutext4").await;
}

#[tokio::test]
async fn an_ext3_that_was_cut_off_is_finished() {
    is_finished(Ext3, "cutext3").await;
}

#[tokio::test]
async fn an_xfs_that_was_cut_off_is_finished() {
    is_finished(Xfs, "cutxfs").await;
}

#[tokio::test]
async fn a_btrfs_that_was_cut_off_is_finished() {
    is_finished(Btrfs, "cutbtrfs").await;
}

#[tokio::test]
async fn it_may_be_finished_as_another_filesystem() {
    if !can_run().await {
        return;
    }
    for (index, (first, then)) in [(Xfs, Ext4), (Ext4, Btrfs), (Btrfs, Xfs)]
        .into_iter()
        .enumerate()
    {
        let world = World::with_disk(&format!("cutother{index}")).await;
        cut_off(&world, first, 40).await;
        world.stage(then).await.unwrap();
        world.unstage().await;
        sh(&format!("{} {}", check(then), world.device())).await;
    }
}

#[tokio::test]
async fn a_disk_that_was_away_meanwhile_is_left_as_it_is_and_the_error_says_why() {
    if !can_run().await {
        return;
    }
    for (filesystem, at) in [(Ext4, 10), (Xfs, 20), (Btrfs, 20)] {
        let world = World::with_disk(&format!("cutaway{filesystem}")).await;
        cut_off(&world, filesystem, at).await;
        world.detach().await;
        world.attach().await;
        let before = world.hash().await;
        let error = world.stage(filesystem).await.unwrap_err();
        let says = format!("FORMAT_INTERRUPTED: volume d-cutaway{filesystem}: staging is refused");
        assert!(error.starts_with(&says), "{error}");
        assert!(
            error.contains(&format!("a mkfs.{filesystem} was cut off on it"))
                && error.contains("the disk was away"),
            "{error}"
        );
        assert_eq!(world.hash().await, before);
    }
}

#[tokio::test]
async fn without_a_record_a_half_made_filesystem_is_nobody_s_to_overwrite() {
    if !can_run().await {
        return;
    }
    for (filesystem, at, name) in [
        (Ext4, 10, "FOREIGN_DATA"),
        (Xfs, 20, "FORMAT_INTERRUPTED"),
        (Btrfs, 20, "FORMAT_INTERRUPTED"),
    ] {
        let world = World::with_disk(&format!("cutlost{filesystem}")).await;
        cut_off(&world, filesystem, at).await;
        std::fs::remove_dir_all(world.path("state")).unwrap();
        let before = world.hash().await;
        let error = world.stage(filesystem).await.unwrap_err();
        assert!(error.starts_with(name), "{error}");
        assert_eq!(world.hash().await, before);
    }
}

#[tokio::test]
async fn what_somebody_put_there_after_the_cut_is_not_overwritten() {
    if !can_run().await {
        return;
    }
    let world = World::with_disk("cutforeign").await;
    cut_off(&world, Ext4, 10).await;
    let device = world.device();
    sh(&format!(
        "dd if=/dev/zero of={device} bs=1M count=8 status=none; mkswap {device}"
    ))
    .await;
    let before = world.hash().await;
    let error = world.stage(Ext4).await.unwrap_err();
    assert!(error.starts_with("FOREIGN_DATA"), "{error}");
    assert_eq!(world.hash().await, before);
}

#[tokio::test]
async fn a_disk_that_is_handed_out_as_a_device_is_no_longer_ours_to_finish() {
    if !can_run().await {
        return;
    }
    let world = World::with_disk("cutblock").await;
    cut_off(&world, Ext4, 10).await;
    let mut request = world.request(Ext4);
    request.access = Access::Block;
    let staged = world.node().stage(request, Deadline::after(AMPLE)).await;
    staged.unwrap();
    assert_eq!(world.records(), 0);
    let before = world.hash().await;
    let error = world.stage(Ext4).await.unwrap_err();
    assert!(error.starts_with("FOREIGN_DATA"), "{error}");
    assert_eq!(world.hash().await, before);
}

#[tokio::test]
async fn a_record_that_outlived_its_mkfs_is_dropped_and_the_filesystem_kept() {
    if !can_run().await {
        return;
    }
    let world = World::with_disk("cutstale").await;
    cut_off(&world, Ext4, 10).await;
    let record = world.path("state/format/d-cutstale.json");
    let kept = std::fs::read(&record).unwrap();
    world.stage(Ext4).await.unwrap();
    std::fs::write(world.path("staging/file"), "precious").unwrap();
    world.unstage().await;
    std::fs::write(&record, kept).unwrap();
    world.stage(Ext4).await.unwrap();
    let file = std::fs::read_to_string(world.path("staging/file")).unwrap();
    assert_eq!(file, "precious");
    assert_eq!(world.records(), 0);
}

#[tokio::test]
async fn a_mkfs_that_outlived_its_node_is_waited_for() {
    if !can_run().await {
        return;
    }
    let world = World::with_disk("cutalive").await;
    cut_off(&world, Btrfs, 20).await;
    // It holds the same lock as a mkfs does, and like mkfs.btrfs it has not opened the device exclusively.
    let device = world.device();
    let end = world.path("end");
    let until = format!("until [ -e {} ]; do sleep 0.05; done", end.display());
    let hold = Command::new("flock").args(["--no-fork", &device, "sh", "-c", &until]);
    let holder = Processes.run(&hold, Deadline::after(AMPLE * 5));
    let stages = async {
        sh(&format!(
            "while flock --nonblock {device} true; do sleep 0.02; done"
        ))
        .await;
        let before = world.hash().await;
        let brief = Deadline::after(Duration::from_secs(5));
        let staged = world.node().stage(world.request(Btrfs), brief).await;
        let error = told(staged.unwrap_err());
        assert!(error.starts_with("FORMAT_RUNNING"), "{error}");
        assert_eq!(world.hash().await, before);
        let ends = async {
            tokio::time::sleep(Duration::from_millis(200)).await;
            std::fs::write(&end, "").unwrap();
        };
        let (staged, ()) = tokio::join!(world.stage(Btrfs), ends);
        staged.unwrap();
    };
    let (held, ()) = tokio::join!(holder, stages);
    held.unwrap();
}

#[tokio::test]
async fn a_mkfs_that_found_no_room_is_finished_when_there_is_some() {
    if !can_run().await {
        return;
    }
    let world = World::new("cutroom", SIZE);
    let small = world.path("small");
    std::fs::create_dir(&small).unwrap();
    let at = small.display();
    sh(&format!("mount -t tmpfs -o size=2m none {at}")).await;
    let image = world.image();
    std::fs::remove_file(&image).unwrap();
    sh(&format!(
        "truncate -s {SIZE} {at}/cutroom.img; d=$(losetup -f --show {at}/cutroom.img); ln -s $d {}/devices/cutroom",
        world.dir.path().display()
    ))
    .await;
    let error = world.stage(Ext4).await.unwrap_err();
    assert!(
        error.starts_with("TOOL_FAILED") || error.starts_with("HOST_ERROR"),
        "{error}"
    );
    assert_eq!(world.records(), 1);
    sh(&format!("mount -o remount,size=512m {at}")).await;
    world.stage(Ext4).await.unwrap();
    assert_eq!(world.records(), 0);
    world.unstage().await;
    sh(&format!("e2fsck -fn {}", world.device())).await;
    world.detach().await;
}
