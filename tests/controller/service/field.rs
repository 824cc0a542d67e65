//! Sizes, names and parameters; `tests/controller/hostile` has every field with invalid values.

use crate::service::kit::*;

#[track_caller]
fn assert_named<T: std::fmt::Debug>(response: RpcResult<T>, field: &str) {
    assert_error(response, Code::InvalidArgument, &[field]);
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
async fn unsupported_parameters_are_rejected_by_name() {
    let stage = Stage::new(&[]);
    let request = CreateVolumeRequest {
        mutable_parameters: parameters(&[("iops", "9000")]),
        ..new_volume("pvc-1")
    };
    assert_named(stage.create(request).await, "iops");
    let request = CreateSnapshotRequest {
        parameters: parameters(&[("retention", "3")]),
        ..new_snapshot("snap", "d-1")
    };
    assert_named(stage.snapshot_as(request).await, "retention");
}
