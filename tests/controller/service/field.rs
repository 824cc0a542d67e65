//! Missing, too long and invalid fields are rejected by name without a cloud call.

use diskplugin::csi::proto::VolumeContentSource;

use crate::service::kit::*;

#[track_caller]
fn assert_named<T: std::fmt::Debug>(response: RpcResult<T>, field: &str) {
    assert_error(response, Code::InvalidArgument, &[field]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_required_field_is_named_and_makes_no_cloud_call() {
    let stage = Stage::new(&[]);
    assert_named(stage.create(new_volume("")).await, "name");
    let bare = CreateVolumeRequest {
        volume_capabilities: vec![],
        ..new_volume("pvc-1")
    };
    assert_named(stage.create(bare).await, "volume_capabilities");
    assert_named(stage.delete("").await, "volume_id");
    assert_named(stage.publish("", NODE).await, "volume_id");
    assert_named(stage.publish("d-1", "").await, "node_id");
    let bare = ControllerPublishVolumeRequest {
        volume_capability: None,
        ..publication("d-1", NODE)
    };
    assert_named(stage.publish_as(bare).await, "volume_capability");
    assert_named(stage.unpublish("", NODE).await, "volume_id");
    assert_named(stage.snapshot("", "d-1").await, "name");
    assert_named(stage.snapshot("snap", "").await, "source_volume_id");
    assert_named(stage.delete_snapshot("").await, "snapshot_id");
    assert_named(stage.expand("", 20).await, "volume_id");
    let bare = ControllerExpandVolumeRequest {
        volume_id: "d-1".to_owned(),
        ..Default::default()
    };
    let expanded = stage.service.controller_expand_volume(Request::new(bare)).await;
    assert_named(expanded, "capacity_range");
    assert!(stage.cloud.counts().is_empty(), "{:?}", stage.cloud.counts());
}

#[tokio::test(start_paused = true)]
async fn an_invalid_size_is_rejected_with_its_value() {
    let stage = Stage::new(&[]);
    let of_size = |required_bytes, limit_bytes| CreateVolumeRequest {
        capacity_range: Some(CapacityRange {
            required_bytes,
            limit_bytes,
        }),
        ..new_volume("pvc-1")
    };
    let below = "limit_bytes 10737418240 is below required_bytes 21474836480";
    assert_named(stage.create(of_size(20 << 30, 10 << 30)).await, below);
    assert_named(stage.create(of_size(-1, 0)).await, "required_bytes -1");
    assert_named(stage.create(of_size(0, -5)).await, "limit_bytes -5");
    assert_eq!(code(stage.create(of_size(i64::MAX, 0)).await), Code::OutOfRange);
    assert_eq!(stage.calls("CreateDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_any_text_of_at_most_128_bytes() {
    let stage = Stage::new(&[]);
    for name in ["x", "9 lives/ü", "auto-1", &"n".repeat(128), &"é".repeat(64)] {
        let volume = stage.create(new_volume(name)).await;
        let volume = volume.unwrap_or_else(|status| panic!("{name}: {status}"));
        assert_eq!(stage.create(new_volume(name)).await.unwrap(), volume, "{name}");
        let snapshot = stage.snapshot(name, &volume.volume_id).await;
        snapshot.unwrap_or_else(|status| panic!("{name}: {status}"));
    }
    assert_named(stage.create(new_volume(&"n".repeat(129))).await, "129 bytes");
    assert_named(stage.create(new_volume("a\u{7}b")).await, "control characters");
}

#[tokio::test(start_paused = true)]
async fn unsupported_fields_are_rejected_by_name() {
    let stage = Stage::new(&[]);
    let request = CreateVolumeRequest {
        volume_content_source: Some(VolumeContentSource { r#type: None }),
        ..new_volume("pvc-1")
    };
    assert_named(stage.create(request).await, "neither");
    let mutable = parameters(&[("iops", "9000")]);
    let request = CreateVolumeRequest {
        mutable_parameters: mutable,
        ..new_volume("pvc-1")
    };
    assert_named(stage.create(request).await, "iops");
    let request = CreateSnapshotRequest {
        name: "snap".to_owned(),
        source_volume_id: "d-1".to_owned(),
        parameters: parameters(&[("retention", "3")]),
        ..Default::default()
    };
    assert_named(stage.service.create_snapshot(Request::new(request)).await, "retention");
    let request = ListVolumesRequest {
        max_entries: -1,
        ..Default::default()
    };
    assert_named(stage.list_volumes(request).await, "max_entries -1");
    let request = ListSnapshotsRequest {
        max_entries: -1,
        ..Default::default()
    };
    assert_named(stage.list_snapshots(request).await, "max_entries -1");
}
