//! Tests of the check before a mount.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_damaged_filesystem_is_not_mounted() {
    let content = Content::Filesystem {
        filesystem: Filesystem::Ext4,
        size: Some(Bytes(1 << 30)),
    };
    for (code, mounted) in [(0, true), (1, true), (4, false), (12, false)] {
        let (fake, node) = world(with_disk(content.clone()));
        fake.state().exit_codes.insert("e2fsck", code);
        let mut request = stage_request();
        request.tuning.fsck = Fsck::Preen;
        let staged = node.stager.stage(request, soon()).await;
        assert_eq!(staged.is_ok(), mounted, "{code}: {staged:?}");
        let has_mount = !fake.state().mounts.is_empty();
        assert_eq!(has_mount, mounted, "{code}");
    }
}

/// A process in another mount namespace has a file open.
#[tokio::test(start_paused = true)]
async fn a_filesystem_in_use_elsewhere_is_neither_checked_nor_mounted() {
    let (fake, node) = world(with_disk(Content::Filesystem {
        filesystem: Filesystem::Ext4,
        size: Some(Bytes(1 << 30)),
    }));
    fake.state().in_use = true;
    let error = node
        .stager
        .stage(stage_request(), soon())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::DeviceInUse { .. }), "{error}");
    assert!(fake.state().calls.is_empty(), "{:?}", fake.state().calls);
}

/// Such as by the OOM killer.
#[tokio::test(start_paused = true)]
async fn a_killed_check_is_not_reported_as_damage() {
    let (fake, node) = world(with_disk(Content::Filesystem {
        filesystem: Filesystem::Ext4,
        size: Some(Bytes(1 << 30)),
    }));
    fake.state().killed_program = Some("e2fsck");
    let error = node
        .stager
        .stage(stage_request(), soon())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Tool { .. }), "{error}");
    assert!(fake.state().mounts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_fsck_attribute_decides_about_a_filesystem_with_errors() {
    let content = Content::Filesystem {
        filesystem: Filesystem::Ext4,
        size: Some(Bytes(1 << 30)),
    };
    for (fsck, calls) in [
        (Fsck::Journal, &[][..]),
        (
            Fsck::Preen,
            &["e2fsck -p /dev/vdb", "mkdir /staging", "mount /staging"],
        ),
        (Fsck::None, &["mkdir /staging", "mount /staging"]),
    ] {
        let (fake, node) = world(with_disk(content.clone()));
        fake.state().has_errors = true;
        let mut request = stage_request();
        request.tuning.fsck = fsck;
        let staged = node.stager.stage(request, soon()).await;
        assert_eq!(fake.state().calls, calls, "{fsck:?}");
        if let Err(error) = staged {
            assert_eq!(error.failure(), crate::model::Failure::FilesystemDamaged);
            let text = error_chain(&error);
            assert!(
                text.contains("`e2fsck -f /dev/vdb`") && text.contains("fsck: journal"),
                "{text}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn offline_resize_repairs_only_with_fsck_preen() {
    let content = Content::Filesystem {
        filesystem: Filesystem::Ext4,
        size: Some(Bytes(1 << 29)),
    };
    let mut request = stage_request();
    request.tuning.fsck = Fsck::Journal;
    let (fake, node) = world(with_disk(content.clone()));
    node.stager.stage(request.clone(), soon()).await.unwrap();
    assert_eq!(
        fake.state().calls[..4],
        [
            "e2fsck -p -E journal_only /dev/vdb",
            "e2fsck -f -n /dev/vdb",
            "e2fsck -f -p /dev/vdb",
            "resize2fs /dev/vdb"
        ]
    );
    let (fake, node) = world(with_disk(content));
    fake.state().exit_codes.insert("e2fsck", 1);
    let error = node.stager.stage(request, soon()).await.unwrap_err();
    assert_eq!(error.failure(), crate::model::Failure::FilesystemDamaged);
    assert_eq!(fake.state().calls.len(), 2, "{:?}", fake.state().calls);
}
