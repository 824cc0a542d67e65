//! Mount options, and filesystems that the driver did not create.

use tonic::Code;

use crate::service::kit::{SIZE, World, assert_fails, sh};

/// Options of each filesystem, of which some kernels support only a part.
const OPTIONS: [(&str, &[&str]); 3] = [
    (
        "ext4",
        &[
            "noatime,nodiratime",
            "commit=600",
            "auto_da_alloc=1",
            "nombcache",
            "inode_readahead_blks=0",
            "dax=never",
            "stripe=131072",
            "nosymfollow",
            "X-mount.mkdir",
            "user",
            "comment=mine",
            "context=\"system_u:object_r:container_file_t:s0:c1,c2\"",
            "no_option_of_ext4",
        ],
    ),
    ("xfs", &["attr2", "ikeep", "noikeep", "commit=5"]),
    ("btrfs", &["subvol=/", "compress=zstd:-3", "max_inline=2047"]),
];

/// The driver mounts a filesystem with an option exactly if mount(8) does.
#[tokio::test]
async fn the_kernel_decides_about_mount_options() {
    for (fs_type, options) in OPTIONS {
        let Some(world) = World::new(fs_type).await else { return };
        let (device, mount_point) = (world.disk.device(), world.text("mnt"));
        world.stage().await.unwrap();
        world.unstage().await.unwrap();
        std::fs::create_dir(&mount_point).unwrap();
        for option in options {
            let mount =
                format!("mount -t {fs_type} -o '{option}' {device} {mount_point} 2>/dev/null && umount {mount_point}");
            let expected = sh(&format!("{{ {mount}; }} && echo yes || echo no")).await;
            let volume = world.with_flags(&[option]);
            match volume.stage().await {
                Ok(()) => {
                    assert_eq!(expected, "yes", "{fs_type} {option}");
                    volume.stage().await.unwrap();
                    volume.publish().await.unwrap();
                    volume.publish().await.unwrap();
                    volume.unpublish().await.unwrap();
                }
                rejected => {
                    assert_eq!(expected, "no", "{fs_type} {option}: {rejected:?}");
                    let parts = ["MOUNT_OPTIONS_REJECTED", option, "log"];
                    assert_fails(rejected, Code::InvalidArgument, &parts);
                }
            }
            eprintln!("{fs_type} {option}: {expected}");
            world.unstage().await.unwrap();
        }
    }
}

/// The kernel mounts both as ext4.
#[tokio::test]
async fn ext3_and_ext2_are_used_as_ext4() {
    for kind in ["ext3", "ext2"] {
        let Some(world) = World::new("ext4").await else { return };
        let (device, target) = (world.disk.device(), world.text("target"));
        sh(&format!("mkfs.{kind} -q {device} 200M")).await;
        for _ in 0..2 {
            world.mount().await;
        }
        let found = sh(&format!("findmnt -rno FSTYPE -M {target}")).await;
        assert_eq!(found, "ext4");
        sh(&format!("echo text > {target}/file")).await;
        world.unmount().await;
        world.disk.resize(2 * SIZE).await;
        world.mount().await;
        assert_eq!(sh(&format!("cat {target}/file")).await, "text");
        world.expand(2 * SIZE).await.unwrap();
        let total = world.total_bytes().await.unwrap();
        assert!(total > SIZE * 3 / 2, "{kind}: {total}");
        world.unmount().await;
        sh(&format!("e2fsck -fn {device} > /dev/null 2>&1")).await;
    }
}
