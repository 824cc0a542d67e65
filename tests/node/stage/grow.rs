//! Filesystem parameters of a class, and a restored xfs with the UUID of its source.

use std::fs;

use diskplugin::model::Filesystem::{Btrfs, Ext3, Ext4, Xfs};

use super::kit::{World, is_mounted, sh};

#[tokio::test]
async fn a_restored_xfs_and_its_source_are_mounted_at_the_same_time() {
    let Some(source) = World::new().await else { return };
    source.stage(Xfs).await.unwrap();
    fs::write(source.path("staging/file"), "source").unwrap();
    source.unstage().await;
    source.detach().await;
    let Some(restored) = World::detached().await else {
        return;
    };
    fs::copy(&source.image, &restored.image).unwrap();
    for world in [&source, &restored] {
        world.attach().await;
        world.stage(Xfs).await.unwrap();
    }
    let uuid = |world: &World| {
        let device = world.device();
        async move { sh(&format!("blkid -p -s UUID -o value {device}")).await }
    };
    assert_eq!(uuid(&source).await, uuid(&restored).await);
    fs::write(restored.path("staging/file"), "restored").unwrap();
    for (world, text) in [(&source, "source"), (&restored, "restored")] {
        assert!(is_mounted(&world.path("staging")));
        let file = fs::read_to_string(world.path("staging/file")).unwrap();
        assert_eq!(file, text);
        world.unstage().await;
    }
}

#[tokio::test]
async fn mkfs_applies_the_parameters_of_the_class() {
    let ext = [
        ("blockSize", "1024"),
        ("inodeSize", "512"),
        ("bytesPerInode", "64k"),
        ("label", "tuned"),
        ("mkfsOptions", "-O ^metadata_csum -E lazy_itable_init=0 -m 1"),
    ];
    let xfs = [("blockSize", "2048"), ("inodeSize", "1024"), ("label", "tuned")];
    let btrfs = [("label", "tuned"), ("mkfsOptions", "--csum sha256 -m single")];
    let cases = [
        (
            Ext4,
            &ext[..],
            "dumpe2fs -h",
            &["Block size:               1024", "Inode size:	          512", "tuned"][..],
        ),
        (Ext3, &ext[..2], "dumpe2fs -h", &["Block size:               1024"]),
        (
            Xfs,
            &xfs,
            "xfs_db -r -c sb -c p",
            &["blocksize = 2048", "inodesize = 1024", "fname = \"tuned"],
        ),
        (Btrfs, &btrfs, "btrfs inspect-internal dump-super", &["sha256", "tuned"]),
    ];
    for (filesystem, parameters, command, parts) in cases {
        let Some(world) = World::new().await else { return };
        let mut request = world.stage_request(filesystem);
        for (key, value) in parameters.iter().chain(&[("discard", "both")]) {
            assert_eq!(request.tuning.set(key, value), Ok(true));
        }
        world.stage_as(request).await.unwrap();
        let output = sh(&format!("{command} {} 2>/dev/null", world.device())).await;
        for part in parts {
            assert!(output.contains(part), "{filesystem}: {part}: {output}");
        }
        world.unstage().await;
    }
}
