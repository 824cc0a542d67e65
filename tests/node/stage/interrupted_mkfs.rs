//! Staging after an interrupted mkfs, for each number of writes after which the content of the disk differs. mkfs is
//! repeated only if the format record proves that the disk was blank.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use diskplugin::base::Deadline;
use diskplugin::linux::{Command, Exec, ExecError, Output, ProcessExec};
use diskplugin::model::Filesystem::{self, Btrfs, Ext3, Ext4, Xfs};
use diskplugin::node::Access;

use super::kit::{SIZE, TIMEOUT, World, error_text, is_mounted, sh};

/// Kills mkfs at the given write. Other commands run unchanged.
#[derive(Debug)]
struct KillMkfs {
    at_write: u32,
}

#[async_trait]
impl Exec for KillMkfs {
    async fn run(&self, command: &Command, deadline: Deadline) -> Result<Output, ExecError> {
        if !command.program.to_string_lossy().starts_with("mkfs.") {
            return ProcessExec.run(command, deadline).await;
        }
        let inject = format!("inject=pwrite64:signal=KILL:when={}", self.at_write);
        let traced = Command::new("strace")
            .args(["-f", "-o", "/dev/null", "-e", "trace=pwrite64", "-e"])
            .arg(inject)
            .arg(&command.program)
            .args(&command.args);
        ProcessExec.run(&traced, deadline).await
    }
}

/// The command that checks a filesystem without changing it.
fn check_command(filesystem: Filesystem) -> &'static str {
    match filesystem {
        Ext4 | Ext3 => "e2fsck -fn",
        Xfs => "xfs_repair -n",
        Btrfs => "btrfs check --readonly",
    }
}

/// Stages with a mkfs that is killed, and returns the error.
async fn interrupt_mkfs(world: &World, filesystem: Filesystem, at_write: u32) -> String {
    let node = world.node_with(Arc::new(KillMkfs { at_write }));
    let request = world.stage_request(filesystem);
    let staged = node.stager.stage(request, Deadline::after(TIMEOUT)).await;
    assert!(!is_mounted(&world.path("staging")));
    assert!(!world.path("staging").exists());
    error_text(staged.unwrap_err())
}

/// Writes after which the content of the disk differs, determined by trying all of them.
fn write_numbers(filesystem: Filesystem) -> &'static [u32] {
    match filesystem {
        Ext4 | Ext3 => &[1, 5, 10, 40],
        Xfs => &[1, 4, 60],
        Btrfs => &[6, 9, 60],
    }
}

async fn check_mkfs_is_repeated(filesystem: Filesystem) {
    for &at in write_numbers(filesystem) {
        let Some(world) = World::new().await else { return };
        let error = interrupt_mkfs(&world, filesystem, at).await;
        assert!(error.contains("TOOL_FAILED"), "{at}: {error}");
        assert_eq!(world.format_records(), 1, "{at}");
        world.stage(filesystem).await.unwrap();
        assert_eq!(world.format_records(), 0, "{at}");
        std::fs::write(world.path("staging/file"), "x").unwrap();
        world.unstage().await;
        sh(&format!("{} {}", check_command(filesystem), world.device())).await;
    }
}

crate::common::rows! { check_mkfs_is_repeated:
    an_interrupted_mkfs_of_ext4_is_repeated(Ext4),
    an_interrupted_mkfs_of_ext3_is_repeated(Ext3),
    an_interrupted_mkfs_of_xfs_is_repeated(Xfs),
    an_interrupted_mkfs_of_btrfs_is_repeated(Btrfs),
}

#[tokio::test]
async fn mkfs_may_be_repeated_with_another_filesystem_type() {
    for (first, then) in [(Xfs, Ext4), (Ext4, Btrfs), (Btrfs, Xfs)] {
        let Some(world) = World::new().await else { return };
        interrupt_mkfs(&world, first, 40).await;
        world.stage(then).await.unwrap();
        world.unstage().await;
        sh(&format!("{} {}", check_command(then), world.device())).await;
    }
}

#[tokio::test]
async fn mkfs_is_not_repeated_after_the_disk_was_detached() {
    for (filesystem, at) in [(Ext4, 10), (Xfs, 20), (Btrfs, 20)] {
        let Some(world) = World::new().await else { return };
        interrupt_mkfs(&world, filesystem, at).await;
        world.detach().await;
        world.attach().await;
        let prefix = format!("FORMAT_INTERRUPTED: volume d-{}: staging is refused", world.serial);
        let error = world.assert_rejected(filesystem, &prefix).await;
        assert!(
            error.contains(&format!("a mkfs.{filesystem} was interrupted on it"))
                && error.contains("the disk was detached"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn mkfs_is_not_repeated_without_a_format_record() {
    for (filesystem, at, name) in [
        (Ext4, 10, "FOREIGN_DATA"),
        (Xfs, 20, "FORMAT_INTERRUPTED"),
        (Btrfs, 20, "FORMAT_INTERRUPTED"),
    ] {
        let Some(world) = World::new().await else { return };
        interrupt_mkfs(&world, filesystem, at).await;
        std::fs::remove_dir_all(world.path("state")).unwrap();
        world.assert_rejected(filesystem, name).await;
    }
}

#[tokio::test]
async fn foreign_data_written_after_the_interruption_is_not_overwritten() {
    let Some(world) = World::new().await else { return };
    interrupt_mkfs(&world, Ext4, 10).await;
    let device = world.device();
    sh(&format!(
        "dd if=/dev/zero of={device} bs=1M count=8 status=none; mkswap {device}"
    ))
    .await;
    world.assert_rejected(Ext4, "FOREIGN_DATA").await;
}

#[tokio::test]
async fn mkfs_is_not_repeated_after_staging_as_a_block_device() {
    let Some(world) = World::new().await else { return };
    interrupt_mkfs(&world, Ext4, 10).await;
    let mut request = world.stage_request(Ext4);
    request.access = Access::Block;
    world.stage_as(request).await.unwrap();
    assert_eq!(world.format_records(), 0);
    world.assert_rejected(Ext4, "FOREIGN_DATA").await;
}

#[tokio::test]
async fn the_record_of_a_completed_mkfs_is_removed_and_the_filesystem_is_kept() {
    let Some(world) = World::new().await else { return };
    interrupt_mkfs(&world, Ext4, 10).await;
    let record = world.path(&format!("state/format/d-{}.json", world.serial));
    let kept = std::fs::read(&record).unwrap();
    world.stage(Ext4).await.unwrap();
    std::fs::write(world.path("staging/file"), "precious").unwrap();
    world.unstage().await;
    std::fs::write(&record, kept).unwrap();
    world.stage(Ext4).await.unwrap();
    let file = std::fs::read_to_string(world.path("staging/file")).unwrap();
    assert_eq!(file, "precious");
    assert_eq!(world.format_records(), 0);
}

#[tokio::test]
async fn staging_waits_for_a_mkfs_of_an_earlier_process() {
    let Some(world) = World::new().await else { return };
    interrupt_mkfs(&world, Btrfs, 20).await;
    // Holds the same lock as mkfs and, like mkfs.btrfs, does not open the device exclusively.
    let device = world.device();
    let end = world.path("end");
    let until = format!("until [ -e {} ]; do sleep 0.05; done", end.display());
    let hold = Command::new("flock").args(["--no-fork", &device, "sh", "-c", &until]);
    let holder = ProcessExec.run(&hold, Deadline::after(TIMEOUT * 5));
    let stages = async {
        sh(&format!("while flock --nonblock {device} true; do sleep 0.02; done")).await;
        let before = world.hash().await;
        let deadline = Deadline::after(Duration::from_secs(5));
        let staged = world.node().stager.stage(world.stage_request(Btrfs), deadline).await;
        let error = error_text(staged.unwrap_err());
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
async fn a_mkfs_that_failed_for_lack_of_space_is_repeated() {
    let Some(world) = World::detached().await else { return };
    let small = world.path("small");
    std::fs::create_dir(&small).unwrap();
    let at = small.display();
    sh(&format!("mount -t tmpfs -o size=2m none {at}")).await;
    std::fs::remove_file(&world.image).unwrap();
    sh(&format!(
        "truncate -s {SIZE} {at}/{name}; d=$(flock /dev losetup -f --show {at}/{name}); ln -s $d {}",
        world.link().display(),
        name = world.image.file_name().unwrap().to_str().unwrap(),
    ))
    .await;
    let error = world.stage(Ext4).await.unwrap_err();
    assert!(
        error.starts_with("TOOL_FAILED") || error.starts_with("HOST_ERROR"),
        "{error}"
    );
    assert_eq!(world.format_records(), 1);
    sh(&format!("mount -o remount,size=512m {at}")).await;
    world.stage(Ext4).await.unwrap();
    assert_eq!(world.format_records(), 0);
    world.unstage().await;
    sh(&format!("e2fsck -fn {}", world.device())).await;
    world.detach().await;
}
