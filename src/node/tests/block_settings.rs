//! Tests of the block device settings of a volume.

use super::observe::CallContext;
use super::*;

const READ_AHEAD: &str = "queue/read_ahead_kb";

fn with_settings(text: &str) -> StageRequest {
    let mut request = stage_request();
    let known = request.tuning.set("sysConfig", text).unwrap();
    assert!(known);
    request
}

#[tokio::test(start_paused = true)]
async fn block_settings_are_applied_before_the_mount_and_set_once() {
    let (fake, node) = world(with_disk(Content::Blank));
    set_block_setting(&fake, READ_AHEAD, "128");
    set_block_setting(&fake, "queue/nomerges", "0");
    for _ in 0..2 {
        let request = with_settings("queue/read_ahead_kb=4096,queue/nomerges=0");
        node.stager.stage(request, soon()).await.unwrap();
    }
    assert_eq!(fake.state().block_settings[READ_AHEAD], "4096");
    let calls = take_calls(&fake);
    assert!(calls.starts_with("set queue/read_ahead_kb, "), "{calls}");
    assert_eq!(calls.matches("set ").count(), 1, "{calls}");
}

/// Only a first format needs a record.
#[tokio::test(start_paused = true)]
async fn an_existing_volume_with_settings_is_staged_without_a_writable_state_directory() {
    let (fake, node) = world(with_disk(filesystem(Filesystem::Ext4, 20 << 30)));
    set_block_setting(&fake, READ_AHEAD, "128");
    // The directory of the staging records cannot be created.
    std::fs::write(state_dir(&fake).join("volume"), "").unwrap();
    let request = with_settings("queue/read_ahead_kb=4096");
    node.stager.stage(request, soon()).await.unwrap();
    assert_eq!(fake.state().block_settings[READ_AHEAD], "4096");
}

#[tokio::test(start_paused = true)]
async fn a_missing_setting_is_rejected_before_any_setting_is_changed() {
    let (fake, node) = world(with_disk(Content::Blank));
    set_block_setting(&fake, READ_AHEAD, "128");
    let request = with_settings("queue/read_ahead_kb=4096,queue/wbt_lat_usec=0");
    let error = node.stager.stage(request, soon()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::BlockSettingRejected);
    assert!(error.to_string().contains("queue/wbt_lat_usec=0"), "{error}");
    assert_eq!(take_calls(&fake), "");
}

/// The disk was detached during the call, and another one has its name.
#[tokio::test(start_paused = true)]
async fn settings_of_another_disk_with_the_same_name_are_not_changed() {
    let (fake, _) = world(with_disk(Content::Blank));
    let (volume, device) = (volume(), disk("vdb", 16, "bp1"));
    let call = CallContext::new(&*fake, &volume, "staging", soon());
    let request = with_settings("queue/read_ahead_kb=4096");
    for (now, is_applied) in [(device.clone(), true), (disk("vdb", 17, "bp2"), false)] {
        fake.state().devices = vec![now];
        set_block_setting(&fake, READ_AHEAD, "128");
        let applied = super::super::block_settings::apply(call, &device, &request.tuning.block_settings).await;
        assert_eq!(applied.is_ok(), is_applied, "{applied:?}");
        let expected = if is_applied { "4096" } else { "128" };
        assert_eq!(fake.state().block_settings[READ_AHEAD], expected);
    }
}
