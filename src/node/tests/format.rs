//! Tests of formatting: only blank devices are formatted, and an interrupted mkfs is repeated.

use super::tool_slots::ToolKind;
use super::*;

/// The number of mkfs records.
fn records(fake: &FakeHost) -> usize {
    let state = fake.state();
    let kept = state.state_dir.as_ref().unwrap().path().join("format");
    std::fs::read_dir(kept).map_or(0, Iterator::count)
}

/// A node on which a mkfs has failed, and left this content.
async fn after_interrupted_mkfs(content: Content) -> (Arc<FakeHost>, Arc<NodeServices>) {
    let (fake, node) = world(FakeState {
        exit_codes: std::collections::HashMap::from([("mkfs.ext4", 1)]),
        ..with_disk(Content::Blank)
    });
    node.stager.stage(stage_request(), soon()).await.unwrap_err();
    {
        let mut state = fake.state();
        state.content = Some(content);
        state.exit_codes.clear();
        state.calls.clear();
    }
    (fake, node)
}

#[tokio::test(start_paused = true)]
async fn a_failed_mkfs_is_repeated_by_the_next_stage() {
    let (fake, node) = after_interrupted_mkfs(Content::Unknown { offset: 8192 }).await;
    assert_eq!(records(&fake), 1);
    node.stager.stage(stage_request(), soon()).await.unwrap();
    assert_eq!(
        fake.state().calls,
        [
            "wipe /dev/vdb",
            MKFS_EXT4,
            "flush /dev/vdb",
            "mkdir /staging",
            "mount /staging"
        ]
    );
    assert_eq!(records(&fake), 0);
}

#[tokio::test(start_paused = true)]
async fn the_record_of_a_mkfs_remains_if_the_device_was_removed_before_the_flush() {
    let (fake, node) = world(FakeState {
        lacks_nodes: true,
        ..with_disk(Content::Blank)
    });
    let volume = volume();
    let call = super::observe::CallContext::new(&*fake, &volume, "staging");
    let (device, tuning) = (disk("vdb", 16, "bp1"), Tuning::default());
    let formatter = &node.stager.formatter;
    let formatted = formatter.format(call, &device, Filesystem::Ext4, &tuning, None);
    let error = crate::base::error_chain(&formatted.await.unwrap_err());
    assert!(error.contains("was removed while it was formatted"), "{error}");
    assert_eq!(records(&fake), 1);
}

/// On another node, nothing would prove that the content can be discarded.
#[tokio::test(start_paused = true)]
async fn an_incomplete_filesystem_is_wiped_before_the_disk_is_released() {
    let (fake, node) = after_interrupted_mkfs(Content::Unknown { offset: 8192 }).await;
    node.unstager.unstage(unstage_request(), soon()).await.unwrap();
    assert_eq!(
        fake.state().calls,
        ["wipe /dev/vdb", "flush /dev/vdb"],
        "the wipe is flushed with the release"
    );
    assert_eq!(records(&fake), 0);
}

/// The error may pass. Nothing is released until the content is clear.
#[tokio::test(start_paused = true)]
async fn a_disk_with_unclear_content_after_an_interrupted_mkfs_is_not_released() {
    let (fake, node) = after_interrupted_mkfs(Content::Unknown { offset: 8192 }).await;
    fake.state().content = None;
    let error = node.unstager.unstage(unstage_request(), soon()).await;
    assert!(matches!(error, Err(Error::Host { .. })), "{error:?}");
    assert!(fake.state().calls.is_empty(), "{:?}", fake.state().calls);
    assert_eq!(records(&fake), 1);
}

#[tokio::test(start_paused = true)]
async fn a_complete_filesystem_is_kept_when_the_disk_is_released() {
    let complete = filesystem(Filesystem::Ext4, None);
    let (fake, node) = after_interrupted_mkfs(complete).await;
    node.unstager.unstage(unstage_request(), soon()).await.unwrap();
    assert_eq!(fake.state().calls, ["flush /dev/vdb"]);
    assert_eq!(records(&fake), 0);
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_filesystem_of_another_device_incarnation_is_kept() {
    let (fake, node) = after_interrupted_mkfs(Content::Unknown { offset: 8192 }).await;
    fake.state().devices[0].sequence = Some(crate::linux::DeviceSequence::Diskseq(99));
    let error = node.stager.stage(stage_request(), soon()).await.unwrap_err();
    assert_eq!(error.failure(), crate::model::Failure::FormatInterrupted);
    assert!(fake.state().calls.is_empty(), "{:?}", fake.state().calls);
}

#[tokio::test(start_paused = true)]
async fn a_device_locked_by_another_mkfs_is_not_formatted() {
    let (fake, node) = world(with_disk(Content::Blank));
    fake.state().failing_call = Some("lock");
    let error = node.stager.stage(stage_request(), soon()).await.unwrap_err();
    assert_eq!(error.failure(), crate::model::Failure::FormatRunning);
    assert!(fake.state().calls.is_empty(), "{:?}", fake.state().calls);
}

fn blank_on_first_read() -> FakeState {
    FakeState {
        next_content: Some(Content::Unsupported {
            description: "a gpt partition table".to_owned(),
        }),
        ..with_disk(Content::Blank)
    }
}

async fn assert_not_formatted(fake: &FakeHost, node: &Arc<NodeServices>) {
    let error = node.stager.stage(stage_request(), soon()).await.unwrap_err();
    assert_eq!(
        error_chain(&error),
        "volume d-bp1: staging failed: /dev/vdb has changed during the call: it was blank and now \
         holds a gpt partition table"
    );
    assert!(fake.state().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn data_written_while_the_device_is_locked_is_not_overwritten() {
    let (fake, node) = world(FakeState {
        locked_until: Some(Instant::now() + Duration::from_millis(100)),
        ..blank_on_first_read()
    });
    assert_not_formatted(&fake, &node).await;
}

#[tokio::test(start_paused = true)]
async fn data_written_while_mkfs_waits_for_other_tools_is_not_overwritten() {
    let (fake, node) = world(blank_on_first_read());
    let slots = &node.stager.tool_slots;
    let mut others = Vec::new();
    while let Some(slot) = slots.try_acquire(ToolKind::Quick) {
        others.push(slot);
    }
    let release = async move {
        tokio::time::sleep(Duration::from_millis(60)).await;
        drop(others);
    };
    tokio::join!(assert_not_formatted(&fake, &node), release);
}

#[tokio::test(start_paused = true)]
async fn an_unlocked_blank_disk_is_read_once() {
    let (fake, node) = world(with_disk(Content::Blank));
    node.stager.stage(stage_request(), soon()).await.unwrap();
    assert_eq!(fake.state().content_reads, 1);
}
