//! Tests of the block device settings of a volume.

use super::observe::CallContext;
use super::*;

fn with_settings(text: &str) -> StageRequest {
    let mut request = stage_request();
    let known = request.tuning.take("sysConfig", text).unwrap();
    assert!(known);
    request
}

#[tokio::test(start_paused = true)]
async fn block_settings_are_applied_before_the_mount_and_reset_after_unstage() {
    let (fake, node) = world(with_disk(Content::Blank));
    fake.state().block_settings = [
        ("queue/read_ahead_kb".to_owned(), "128".to_owned()),
        ("queue/nomerges".to_owned(), "0".to_owned()),
    ]
    .into();
    let request = || with_settings("queue/read_ahead_kb=4096,queue/nomerges=0");
    node.stager.stage(request(), soon()).await.unwrap();
    // A repeated stage, also of another process, keeps the original value.
    let state_dir = fake.state().state_dir.as_ref().unwrap().path().to_owned();
    let node = restarted(&fake, "/", &state_dir);
    node.stager.stage(request(), soon()).await.unwrap();
    assert_eq!(fake.state().calls[0], "set queue/read_ahead_kb");
    assert_eq!(fake.state().block_settings["queue/read_ahead_kb"], "4096");
    node.unstager
        .unstage(unstage_request(), soon())
        .await
        .unwrap();
    assert_eq!(fake.state().block_settings["queue/read_ahead_kb"], "128");
    let sets = fake
        .state()
        .calls
        .iter()
        .filter(|call| call.starts_with("set"))
        .count();
    assert_eq!(sets, 2);
}

#[tokio::test(start_paused = true)]
async fn a_missing_setting_or_a_failed_stage_leaves_the_settings_as_they_were() {
    let (fake, node) = world(with_disk(Content::Blank));
    fake.state()
        .block_settings
        .insert("queue/read_ahead_kb".to_owned(), "128".to_owned());
    let request = with_settings("queue/read_ahead_kb=4096,queue/wbt_lat_usec=0");
    let error = node.stager.stage(request, soon()).await.unwrap_err();
    assert_eq!(error.failure(), crate::model::Failure::BlockSettingRejected);
    assert!(
        error.to_string().contains("queue/wbt_lat_usec=0"),
        "{error}"
    );
    assert!(fake.state().calls.is_empty());

    fake.state().failing_call = Some("mount");
    let request = with_settings("queue/read_ahead_kb=4096");
    node.stager.stage(request, soon()).await.unwrap_err();
    assert_eq!(fake.state().block_settings["queue/read_ahead_kb"], "128");
}

/// The disk was detached during the call, and another one has its name.
#[tokio::test(start_paused = true)]
async fn settings_of_another_disk_with_the_same_name_are_not_changed() {
    let (fake, node) = world(with_disk(Content::Blank));
    let set = |value: &str| {
        let name = "queue/read_ahead_kb".to_owned();
        fake.state().block_settings.insert(name, value.to_owned());
    };
    set("128");
    let applier = &node.stager.block_settings;
    let volume = volume();
    let call = CallContext::new(&volume, "staging");
    let device = disk("vdb", 16, "bp1");
    let request = with_settings("queue/read_ahead_kb=4096");
    let settings = &request.tuning.block_settings;
    applier.apply(call, &device, settings).await.unwrap();
    assert_eq!(fake.state().block_settings["queue/read_ahead_kb"], "4096");

    fake.state().devices = vec![disk("vdb", 17, "bp2")];
    set("256");
    applier.restore(call, &device).await;
    applier.apply(call, &device, settings).await.unwrap_err();
    assert_eq!(fake.state().block_settings["queue/read_ahead_kb"], "256");
}
