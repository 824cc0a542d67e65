//! Tests of formatting: only blank devices are formatted, and an interrupted mkfs is repeated.

use super::tool_slots::ToolKind;
use super::*;

const UNKNOWN: Content = Content::Unknown { offset: 8192 };

/// The number of mkfs records.
fn records(fake: &FakeHost) -> usize {
    std::fs::read_dir(state_dir(fake).join("format")).map_or(0, Iterator::count)
}

/// A node on which a mkfs has failed, and left this content.
async fn after_interrupted_mkfs(content: impl Into<Option<Content>>) -> (Arc<FakeHost>, Arc<NodeServices>) {
    let (fake, node) = world(FakeState {
        exit_codes: HashMap::from([("mkfs.ext4", 1)]),
        ..with_disk(Content::Blank)
    });
    stage(&node).await.unwrap_err();
    assert_eq!(records(&fake), 1);
    take_calls(&fake);
    fake.state().content = content.into();
    fake.state().exit_codes.clear();
    (fake, node)
}

#[tokio::test(start_paused = true)]
async fn a_failed_mkfs_is_repeated_by_the_next_stage() {
    let (fake, node) = after_interrupted_mkfs(UNKNOWN).await;
    stage(&node).await.unwrap();
    assert_eq!(
        take_calls(&fake),
        format!("wipe /dev/vdb, {MKFS_EXT4}, flush /dev/vdb, mkdir /staging, mount /staging")
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
    let call = super::observe::CallContext::new(&*fake, &volume, "staging", soon());
    let (device, tuning) = (disk("vdb", 16, "bp1"), Tuning::default());
    let formatter = &node.stager.formatter;
    let formatted = formatter.format(call, &device, Filesystem::Ext4, &tuning, None);
    let error = error_chain(&formatted.await.unwrap_err());
    assert!(error.contains("was removed while it was formatted"), "{error}");
    assert_eq!(records(&fake), 1);
}

/// On another node, nothing would prove that an incomplete filesystem can be discarded.
#[tokio::test(start_paused = true)]
async fn unstage_wipes_an_incomplete_filesystem_and_keeps_a_complete_one() {
    for (content, calls) in [
        (UNKNOWN, "wipe /dev/vdb, flush /dev/vdb"),
        (filesystem(Filesystem::Ext4, None), "flush /dev/vdb"),
    ] {
        let (fake, node) = after_interrupted_mkfs(content).await;
        unstage(&node).await.unwrap();
        assert_eq!(take_calls(&fake), calls);
        assert_eq!(records(&fake), 0);
    }
}

/// The error may pass. Nothing is released until the content is clear.
#[tokio::test(start_paused = true)]
async fn a_disk_with_unclear_content_after_an_interrupted_mkfs_is_not_released() {
    let (fake, node) = after_interrupted_mkfs(None).await;
    let error = unstage(&node).await;
    assert!(matches!(error, Err(Error::Host { .. })), "{error:?}");
    assert_eq!(take_calls(&fake), "");
    assert_eq!(records(&fake), 1);
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_filesystem_of_another_device_incarnation_is_kept() {
    let (fake, node) = after_interrupted_mkfs(UNKNOWN).await;
    fake.state().devices[0].sequence = Some(crate::linux::DeviceSequence::Diskseq(99));
    let error = stage(&node).await.unwrap_err();
    assert_eq!(error.failure(), Failure::FormatInterrupted);
    assert_eq!(take_calls(&fake), "");
}

#[tokio::test(start_paused = true)]
async fn a_device_locked_by_another_mkfs_is_not_formatted() {
    let (fake, node) = world(with_disk(Content::Blank));
    fake.state().failing_call = Some("lock");
    let error = stage(&node).await.unwrap_err();
    assert_eq!(error.failure(), Failure::FormatRunning);
    assert_eq!(take_calls(&fake), "");
}

/// The device is locked by another process, or mkfs waits for other tools.
#[tokio::test(start_paused = true)]
async fn data_written_while_mkfs_waits_is_not_overwritten() {
    for is_locked in [true, false] {
        let (fake, node) = world(FakeState {
            next_content: Some(Content::Unsupported {
                description: "a gpt partition table".to_owned(),
            }),
            ..with_disk(Content::Blank)
        });
        let until = Instant::now() + Duration::from_millis(100);
        let acquire = || node.stager.tool_slots.try_acquire(ToolKind::Quick);
        let mut others = Vec::new();
        match is_locked {
            true => fake.state().locked_until = Some(until),
            false => others.extend(std::iter::from_fn(acquire)),
        }
        let release = async {
            tokio::time::sleep_until(until).await;
            drop(others);
        };
        let (staged, ()) = tokio::join!(stage(&node), release);
        assert_eq!(
            error_chain(&staged.unwrap_err()),
            "volume d-bp1: staging failed: /dev/vdb has changed during the call: it was blank and now \
             holds a gpt partition table"
        );
        assert_eq!(take_calls(&fake), "");
    }
}
