//! Tests of the check before a mount.

use super::tool_slots::ToolKind;
use super::*;

#[tokio::test(start_paused = true)]
async fn a_damaged_filesystem_is_not_mounted() {
    let content = filesystem(Filesystem::Ext4, 1 << 30);
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
    let (fake, node) = world(with_disk(filesystem(Filesystem::Ext4, 1 << 30)));
    fake.state().in_use = true;
    let error = node.stager.stage(stage_request(), soon()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::DeviceInUse, "{error:?}");
    assert!(fake.state().calls.is_empty(), "{:?}", fake.state().calls);
}

#[tokio::test(start_paused = true)]
async fn only_a_check_that_the_superblock_demands_waits_for_the_slots_of_full_checks() {
    for (has_errors, failure) in [(false, None), (true, Some(Failure::ToolQueueTimeout))] {
        let (fake, node) = world(with_disk(filesystem(Filesystem::Ext4, 1 << 30)));
        fake.state().has_errors = has_errors;
        let slots = || node.stager.tool_slots.try_acquire(ToolKind::FullCheck);
        let _held: Vec<_> = std::iter::from_fn(slots).collect();
        let mut request = stage_request();
        request.tuning.fsck = Fsck::Preen;
        let staged = node.stager.stage(request, soon()).await;
        assert_eq!(staged.err().map(|error| error.failure()), failure);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_a_memory_limit_and_no_timeout() {
    let (fake, node) = world(with_disk(Content::Blank));
    node.stager.stage(stage_request(), soon()).await.unwrap();
    let limits = fake.state().tool_limits.clone();
    assert!(!limits.is_empty());
    for (memory, time) in limits {
        assert_eq!(memory, Some(TOOL_MEMORY));
        assert!(time > Duration::from_secs(86400), "{time:?}");
    }
}

/// Such as by the OOM killer.
#[tokio::test(start_paused = true)]
async fn a_killed_check_is_not_reported_as_damage() {
    let (fake, node) = world(with_disk(filesystem(Filesystem::Ext4, 1 << 30)));
    fake.state().killed_program = Some("e2fsck");
    let error = node.stager.stage(stage_request(), soon()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::ToolFailed, "{error:?}");
    assert!(fake.state().mounts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_fsck_attribute_decides_about_a_filesystem_with_errors() {
    let content = filesystem(Filesystem::Ext4, 1 << 30);
    for (fsck, calls) in [
        (Fsck::Journal, &[][..]),
        (Fsck::Preen, &["e2fsck -p /dev/vdb", "mkdir /staging", "mount /staging"]),
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
    let content = filesystem(Filesystem::Ext4, 1 << 29);
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
    for (command, code, failure, calls) in [
        ("e2fsck", 1, Failure::FilesystemDamaged, 2),
        ("e2fsck -f -n /dev/vdb", 4, Failure::FilesystemDamaged, 2),
        ("e2fsck -f -n /dev/vdb", 8, Failure::ToolFailed, 2),
    ] {
        let (fake, node) = world(with_disk(content.clone()));
        fake.state().exit_codes.insert(command, code);
        let error = node.stager.stage(request.clone(), soon()).await;
        assert_eq!(error.unwrap_err().failure(), failure, "exit code {code}");
        assert_eq!(fake.state().calls.len(), calls, "{:?}", fake.state().calls);
    }
}
