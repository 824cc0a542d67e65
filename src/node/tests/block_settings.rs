//! Tests of the block device settings of a volume.

use super::observe::CallContext;
use super::*;

fn with_settings(text: &str) -> StageRequest {
    let mut request = stage_request();
    let known = request.tuning.set("sysConfig", text).unwrap();
    assert!(known);
    request
}

#[tokio::test(start_paused = true)]
async fn block_settings_are_applied_before_the_mount_and_set_once() {
    let (fake, node) = world(with_disk(Content::Blank));
    fake.state().block_settings = [
        ("queue/read_ahead_kb".to_owned(), "128".to_owned()),
        ("queue/nomerges".to_owned(), "0".to_owned()),
    ]
    .into();
    let request = || with_settings("queue/read_ahead_kb=4096,queue/nomerges=0");
    node.stager.stage(request(), soon()).await.unwrap();
    node.stager.stage(request(), soon()).await.unwrap();
    assert_eq!(fake.state().calls[0], "set queue/read_ahead_kb");
    assert_eq!(fake.state().block_settings["queue/read_ahead_kb"], "4096");
    let calls = fake.state().calls.clone();
    let sets = calls.iter().filter(|call| call.starts_with("set"));
    assert_eq!(sets.count(), 1);
}

/// Only a first format needs a record.
#[tokio::test(start_paused = true)]
async fn an_existing_volume_with_settings_is_staged_without_a_writable_state_directory() {
    let (fake, node) = world(with_disk(filesystem(Filesystem::Ext4, 20 << 30)));
    let setting = ("queue/read_ahead_kb".to_owned(), "128".to_owned());
    fake.state().block_settings = [setting].into();
    let state_dir = fake.state().state_dir.as_ref().unwrap().path().to_owned();
    // The directory of the staging records cannot be created.
    std::fs::write(state_dir.join("volume"), "").unwrap();
    let request = with_settings("queue/read_ahead_kb=4096");
    node.stager.stage(request, soon()).await.unwrap();
    assert_eq!(fake.state().block_settings["queue/read_ahead_kb"], "4096");
}

#[tokio::test(start_paused = true)]
async fn a_missing_setting_is_rejected_before_any_setting_is_changed() {
    let (fake, node) = world(with_disk(Content::Blank));
    fake.state()
        .block_settings
        .insert("queue/read_ahead_kb".to_owned(), "128".to_owned());
    let request = with_settings("queue/read_ahead_kb=4096,queue/wbt_lat_usec=0");
    let error = node.stager.stage(request, soon()).await.unwrap_err();
    assert_eq!(error.failure(), crate::model::Failure::BlockSettingRejected);
    assert!(error.to_string().contains("queue/wbt_lat_usec=0"), "{error}");
    assert!(fake.state().calls.is_empty());
}

/// The disk was detached during the call, and another one has its name.
#[tokio::test(start_paused = true)]
async fn settings_of_another_disk_with_the_same_name_are_not_changed() {
    let (fake, _) = world(with_disk(Content::Blank));
    let set = |value: &str| {
        let name = "queue/read_ahead_kb".to_owned();
        fake.state().block_settings.insert(name, value.to_owned());
    };
    set("128");
    let volume = volume();
    let call = CallContext::new(&*fake, &volume, "staging");
    let device = disk("vdb", 16, "bp1");
    let request = with_settings("queue/read_ahead_kb=4096");
    let settings = &request.tuning.block_settings;
    let applied = crate::node::block_settings::apply(call, &device, settings).await;
    applied.unwrap();
    assert_eq!(fake.state().block_settings["queue/read_ahead_kb"], "4096");

    fake.state().devices = vec![disk("vdb", 17, "bp2")];
    set("256");
    let applied = crate::node::block_settings::apply(call, &device, settings).await;
    applied.unwrap_err();
    assert_eq!(fake.state().block_settings["queue/read_ahead_kb"], "256");
}
