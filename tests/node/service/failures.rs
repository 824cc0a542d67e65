//! The errors and events of each failure of a volume in use. The expected values are the rows of the table in
//! `docs/reference/node-rpcs.md`; each test then follows the advice.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

use crate::common::failure_table::{FailureRow, Observed};
use crate::service::kit::{NodeVolume, SHORT_TIMEOUT, SIZE, World, sh};

/// A volume that a pod uses.
async fn in_use(fs_type: &str) -> Option<World> {
    let world = World::new(fs_type).await?;
    use_healthy(&world).await;
    Some(world)
}

async fn use_healthy(world: &World) {
    world.mount().await;
    assert_eq!(world.health().await.unwrap(), []);
}

/// Makes kubelet's calls for the volume, then releases the volume.
async fn observe(volume: &NodeVolume) -> Observed {
    let health = volume.health().await.unwrap();
    let stats = volume.stats().await.unwrap();
    let second = volume.at("second");
    let publish = second.within(SHORT_TIMEOUT).publish().await;
    second.unpublish().await.unwrap();
    volume.unpublish().await.unwrap();
    let unstage = volume.unstage().await;
    Observed {
        publish,
        unstage,
        health,
        stats,
    }
}

/// Starts the pod again: the volume is staged, is healthy and can be written to.
async fn use_again(world: &World) {
    use_healthy(world).await;
    fs::write(world.path("target/again"), "again").unwrap();
}

#[tokio::test]
async fn a_removed_device_looks_as_documented() {
    let requirements = "command -v python3 && findmnt -n -t devtmpfs /dev";
    if !crate::common::shell::can_run("the removed device", requirements).await {
        return;
    }
    let Some(world) = World::detached("block").await else {
        return;
    };
    let row = FailureRow::of("device removed");
    world.attach_reserved().await;
    use_healthy(&world).await;
    world.unplug().await;
    row.check(&observe(&world).await);
    world.disk.attach().await;
    use_healthy(&world).await;
}

#[tokio::test]
async fn a_filesystem_that_was_remounted_read_only_looks_as_documented() {
    let row = FailureRow::of("read-only remount after an error (ext4)");
    let Some(world) = in_use("ext4").await else { return };
    let device = world.disk.device();
    let name = device.trim_start_matches("/dev/");
    sh(&format!("echo 1 > /sys/fs/ext4/{name}/trigger_fs_error")).await;
    assert!(fs::write(world.path("target/file"), "x").is_err());
    let observed = observe(&world).await;
    row.check(&observed);
    let errors = &observed.health[1].message;
    assert!(errors.contains("1 errors since its last check"), "{errors}");
    use_again(&world).await;
}

#[tokio::test]
async fn a_full_disk_looks_as_documented() {
    let row = FailureRow::of("full disk");
    let Some(world) = in_use("ext4").await else { return };
    let mut file = fs::File::create(world.path("target/fill")).unwrap();
    let data = vec![7; 1 << 20];
    // Space that the filesystem reserves for delayed writes becomes available when they are written.
    for size in [1 << 20, 4096] {
        let error = loop {
            if let Err(error) = file.write_all(&data[..size]).and_then(|()| file.sync_all()) {
                break error;
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull, "{error}");
    }
    drop(file);
    row.check(&observe(&world).await);
    assert_eq!(row.advice(), "expand the claim, or delete files");
    // The calls of external-resizer and kubelet for an expanded claim.
    world.mount().await;
    assert!(fs::write(world.path("target/more"), &data).is_err());
    world.disk.resize(2 * SIZE).await;
    match world.expand(2 * SIZE).await {
        Ok(size) => {
            assert_eq!(size, 2 * SIZE);
            fs::write(world.path("target/more"), &data).unwrap();
        }
        Err(error) => assert!(error.message().contains("CAP_SYS_RESOURCE"), "{error}"),
    }
    fs::remove_file(world.path("target/fill")).unwrap();
    fs::write(world.path("target/more"), &data).unwrap();
}

#[tokio::test]
async fn recorded_errors_look_as_documented() {
    const BLOCK: usize = 4096;
    let row = FailureRow::of("recorded filesystem errors (btrfs)");
    let Some(world) = in_use("btrfs").await else { return };
    let file = world.path("target/file");
    let data = vec![0xA7; 1 << 20];
    fs::write(&file, &data).unwrap();
    sh(&format!("sync {0}; sync -f {0}", file.display())).await;
    // Overwrites the data of the file below the filesystem, which notices it by its checksums.
    let image = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&world.disk.image)
        .unwrap();
    let mut block = vec![0; BLOCK];
    let mut overwritten = 0;
    for at in (0..SIZE).step_by(BLOCK) {
        image.read_exact_at(&mut block, at).unwrap();
        if block == data[..BLOCK] {
            image.write_all_at(&[0; BLOCK], at).unwrap();
            overwritten += 1;
        }
    }
    assert!(overwritten > 0, "the data of the file is in the image");
    image.sync_all().unwrap();
    sh("echo 1 > /proc/sys/vm/drop_caches").await;
    assert!(fs::read(&file).is_err());
    row.check(&observe(&world).await);
}

#[tokio::test]
async fn a_filesystem_that_was_shut_down_looks_as_documented() {
    let row = FailureRow::of("filesystem shutdown (xfs)");
    let Some(world) = in_use("xfs").await else { return };
    sh(&format!("xfs_io -x -c shutdown {}", world.text("target"))).await;
    assert!(fs::write(world.path("target/file"), "x").is_err());
    let error = world.stage().await.unwrap_err();
    assert!(error.message().starts_with("FILESYSTEM_SHUT_DOWN"), "{error}");
    world.expand(SIZE).await.unwrap();
    let observed = observe(&world).await;
    row.check(&observed);
    assert_eq!(observed.stats.usage[0].total, i64::try_from(SIZE).unwrap());
    use_again(&world).await;
}

#[tokio::test]
async fn a_read_only_device_looks_as_documented() {
    let row = FailureRow::of("read-only device");
    let Some(world) = in_use("xfs").await else { return };
    sh(&format!("blockdev --setro {}", world.disk.device())).await;
    row.check(&observe(&world).await);
    use_again(&world).await;
}

#[tokio::test]
async fn a_device_that_is_smaller_than_its_filesystem_looks_as_documented() {
    let row = FailureRow::of("device smaller than its filesystem");
    // The kernel must not write beyond the end of the device, which results in a read-only remount.
    let Some(world) = World::new("ext4").await else { return };
    let volume = world.with_flags(&["noinit_itable"]);
    volume.stage().await.unwrap();
    volume.publish().await.unwrap();
    sh(&format!("sync -f {}", world.text("target"))).await;
    for (size, is_healthy) in [(SIZE / 2, false), (SIZE, true), (SIZE / 2, false)] {
        world.disk.resize(size).await;
        assert_eq!(volume.health().await.unwrap().is_empty(), is_healthy);
    }
    row.check(&observe(&volume).await);
}
