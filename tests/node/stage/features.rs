//! Features of filesystems: those of new ones, and those that the kernel does not support.

use diskplugin::model::Filesystem::{self, Btrfs, Ext3, Ext4, Xfs};

use super::kit::{World, sh};

/// A command that prints the features of the filesystem on the device.
fn features_command(filesystem: Filesystem) -> &'static str {
    match filesystem {
        Ext4 | Ext3 => "dumpe2fs -h 2>/dev/null",
        Xfs => "xfs_db -r -c version -c 'sb 0' -c 'p features_ro_compat' -c 'p features_incompat'",
        Btrfs => "btrfs inspect-internal dump-super",
    }
}

#[tokio::test]
async fn a_new_filesystem_has_no_features_of_kernels_after_5_10() {
    for (filesystem, with, without) in [
        (
            Ext4,
            &["metadata_csum\n", "64bit", "resize_inode"][..],
            &["orphan_file", "metadata_csum_seed"][..],
        ),
        (Ext3, &["has_journal"], &["extent", "orphan_file"]),
        (
            Xfs,
            &["REFLINK", "FINOBT"],
            &["BIGTIME", "INOBTCNT", "NREXT64", "RMAPBT"],
        ),
        (Btrfs, &["NO_HOLES"], &["BLOCK_GROUP_TREE"]),
    ] {
        let Some(world) = World::new().await else { return };
        world.stage(filesystem).await.unwrap();
        world.unstage().await;
        let (command, device) = (features_command(filesystem), world.device());
        let output = sh(&format!("{command} {device}")).await;
        for name in with {
            assert!(output.contains(name), "{filesystem}: {name}: {output}");
        }
        for name in without {
            assert!(!output.contains(name), "{filesystem}: {name}: {output}");
        }
    }
}

#[tokio::test]
async fn the_log_of_the_kernel_names_a_feature_that_it_does_not_support() {
    for (filesystem, command) in [
        (Ext4, "debugfs -w -R 'feature FEATURE_I31'"),
        (
            Xfs,
            "xfs_db -x -c 'sb 0' -c 'write -d features_incompat 0x40000001' >/dev/null 2>&1",
        ),
    ] {
        let Some(world) = World::new().await else { return };
        world.stage(filesystem).await.unwrap();
        world.unstage().await;
        sh(&format!("{command} {}", world.device())).await;
        let error = world.stage(filesystem).await.unwrap_err();
        assert!(
            error.starts_with("HOST_ERROR")
                && error.contains("its log has the reason, such as features")
                && error.contains("Invalid argument"),
            "{error}"
        );
    }
}

/// mkfs checks options that the driver does not deny.
#[tokio::test]
async fn the_message_of_mkfs_about_an_option_is_in_the_error() {
    for (filesystem, options, message) in [
        (Ext4, "-O no_such_feature", "no_such_feature"),
        (Xfs, "-m no_such_key=1", "no_such_key"),
        (Btrfs, "--data raid1", "raid1"),
    ] {
        let Some(world) = World::new().await else { return };
        let mut request = world.stage_request(filesystem);
        assert_eq!(request.tuning.set("mkfsOptions", options), Ok(true));
        let error = world.stage_as(request).await.unwrap_err();
        assert!(error.starts_with("TOOL_FAILED") && error.contains(message), "{error}");
    }
}
