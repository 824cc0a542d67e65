//! Tests of the check before a mount.

use super::tool_slots::ToolKind;
use super::*;

fn fsck_request(fsck: Fsck) -> StageRequest {
    let mut request = stage_request();
    request.tuning.fsck = fsck;
    request
}

fn ext4() -> FakeState {
    with_disk(filesystem(Filesystem::Ext4, 1 << 30))
}

#[tokio::test(start_paused = true)]
async fn a_damaged_filesystem_is_not_mounted() {
    for (code, mounted) in [(0, true), (1, true), (4, false), (12, false)] {
        let (fake, node) = world(ext4());
        fake.state().exit_codes.insert("e2fsck", code);
        let staged = node.stager.stage(fsck_request(Fsck::Preen), soon()).await;
        assert_eq!(staged.is_ok(), mounted, "{code}: {staged:?}");
        let has_mount = !fake.state().mounts.is_empty();
        assert_eq!(has_mount, mounted, "{code}");
    }
}

/// A process in another mount namespace has a file open.
#[tokio::test(start_paused = true)]
async fn a_filesystem_in_use_elsewhere_is_neither_checked_nor_mounted() {
    let (fake, node) = world(ext4());
    fake.state().in_use = true;
    let error = stage(&node).await.unwrap_err();
    assert_eq!(error.failure(), Failure::DeviceInUse, "{error:?}");
    assert_eq!(take_calls(&fake), "");
}

#[tokio::test(start_paused = true)]
async fn only_a_check_that_the_superblock_demands_waits_for_the_slots_of_full_checks() {
    for (has_errors, failure) in [(false, None), (true, Some(Failure::ToolQueueTimeout))] {
        let (fake, node) = world(ext4());
        fake.state().has_errors = has_errors;
        let slots = || node.stager.tool_slots.try_acquire(ToolKind::FullCheck);
        let _held: Vec<_> = std::iter::from_fn(slots).collect();
        let staged = node.stager.stage(fsck_request(Fsck::Preen), soon()).await;
        assert_eq!(staged.err().map(|error| error.failure()), failure);
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_has_a_memory_limit_and_no_timeout() {
    let (fake, node) = world(with_disk(Content::Blank));
    stage(&node).await.unwrap();
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
    let (fake, node) = world(ext4());
    fake.state().killed_program = Some("e2fsck");
    let error = stage(&node).await.unwrap_err();
    assert_eq!(error.failure(), Failure::ToolFailed, "{error:?}");
    assert!(fake.state().mounts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_fsck_attribute_decides_about_a_filesystem_with_errors() {
    for (fsck, calls) in [
        (Fsck::Journal, ""),
        (Fsck::Preen, "e2fsck -p /dev/vdb, mkdir /staging, mount /staging"),
        (Fsck::None, "mkdir /staging, mount /staging"),
    ] {
        let (fake, node) = world(ext4());
        fake.state().has_errors = true;
        let staged = node.stager.stage(fsck_request(fsck), soon()).await;
        assert_eq!(take_calls(&fake), calls, "{fsck:?}");
        if let Err(error) = staged {
            assert_eq!(error.failure(), Failure::FilesystemDamaged);
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
    let (fake, node) = world(with_disk(content.clone()));
    node.stager.stage(fsck_request(Fsck::Journal), soon()).await.unwrap();
    let calls = take_calls(&fake);
    let tools =
        "e2fsck -p -E journal_only /dev/vdb, e2fsck -f -n /dev/vdb, e2fsck -f -p /dev/vdb, resize2fs /dev/vdb, ";
    assert!(calls.starts_with(tools), "{calls}");
    for (command, code, failure, calls) in [
        ("e2fsck", 1, Failure::FilesystemDamaged, 2),
        ("e2fsck -f -n /dev/vdb", 4, Failure::FilesystemDamaged, 2),
        ("e2fsck -f -n /dev/vdb", 8, Failure::ToolFailed, 2),
    ] {
        let (fake, node) = world(with_disk(content.clone()));
        fake.state().exit_codes.insert(command, code);
        let error = node.stager.stage(fsck_request(Fsck::Journal), soon()).await;
        assert_eq!(error.unwrap_err().failure(), failure, "exit code {code}");
        assert_eq!(fake.state().calls.len(), calls, "{:?}", fake.state().calls);
    }
}
