//! Features of filesystems: those of new ones, and those that the kernel does not support.

use diskplugin::base::Deadline;
use diskplugin::model::Filesystem::{self, Btrfs, Ext3, Ext4, Xfs};

use super::kit::{TIMEOUT, World, can_run, error_text, sh};

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
    if !can_run().await {
        return;
    }
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
        let world = World::with_disk(&format!("features{filesystem}")).await;
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
    if !can_run().await {
        return;
    }
    for (filesystem, command) in [
        (Ext4, "debugfs -w -R 'feature FEATURE_I31'"),
        (
            Xfs,
            "xfs_db -x -c 'sb 0' -c 'write -d features_incompat 0x40000001' >/dev/null 2>&1",
        ),
    ] {
        let world = World::with_disk(&format!("unknown{filesystem}")).await;
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

/// mkfs judges options that the driver does not deny.
#[tokio::test]
async fn the_message_of_mkfs_about_an_option_is_in_the_error() {
    if !can_run().await {
        return;
    }
    for (filesystem, options, message) in [
        (Ext4, "-O no_such_feature", "no_such_feature"),
        (Xfs, "-m no_such_key=1", "no_such_key"),
        (Btrfs, "--data raid1", "raid1"),
    ] {
        let world = World::with_disk(&format!("options{filesystem}")).await;
        let mut request = world.request(filesystem);
        let taken = request.tuning.set("mkfsOptions", options);
        assert_eq!(taken, Ok(true));
        let node = world.node();
        let staged = node.stager.stage(request, Deadline::after(TIMEOUT));
        let error = error_text(staged.await.unwrap_err());
        assert!(error.starts_with("TOOL_FAILED") && error.contains(message), "{error}");
    }
}
