//! Sizes of volumes: capacity ranges, returned sizes and limits of the category.

use tonic::{Code, Request};

use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::{ControllerExpandVolumeRequest, CreateVolumeRequest};

use crate::service::kit::{Stage, code, new_volume, parameters, range};

#[tokio::test(start_paused = true)]
async fn returned_sizes_are_actual_and_limits_are_enforced() {
    let stage = Stage::new(&[]);
    let ask = |name: &str, required: i64, limit: i64| CreateVolumeRequest {
        capacity_range: Some(range(required, limit)),
        ..new_volume(name)
    };
    let made = stage.create(ask("pvc-1", 30, 40)).await.unwrap();
    assert_eq!(made.capacity_bytes, 30 << 30);
    // What is there fits, and is what is assert_error.
    let again = stage.create(ask("pvc-1", 25, 40)).await.unwrap();
    assert_eq!(
        (again.volume_id, again.capacity_bytes),
        (made.volume_id.clone(), 30 << 30)
    );
    assert_eq!(code(stage.create(ask("pvc-1", 10, 25)).await), Code::AlreadyExists);
    // The category has no size within the limit.
    assert_eq!(code(stage.create(ask("pvc-2", 5, 10)).await), Code::OutOfRange);
    assert_eq!(stage.expand(&made.volume_id, 20).await.unwrap().0, 30);
    let expand = async |required: i64, limit: i64| {
        let request = ControllerExpandVolumeRequest {
            volume_id: made.volume_id.clone(),
            capacity_range: Some(range(required, limit)),
            ..Default::default()
        };
        let answer = stage.service.controller_expand_volume(Request::new(request)).await;
        answer.map(|answer| answer.into_inner().capacity_bytes >> 30)
    };
    assert_eq!(code(expand(20, 25).await), Code::OutOfRange);
    assert_eq!(expand(35, 35).await.unwrap(), 35);
    let grown = stage.cloud.calls().into_iter();
    let grown = grown.filter(|call| call.action == "ResizeDisk" && call.status == Some(200));
    assert_eq!((stage.disks().len(), grown.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn sizes_and_iops_out_of_range_are_rejected_before_any_cloud_call() {
    let stage = Stage::new(&[]);
    for (class, gib, expected, part) in [
        (&[("type", "cloud_essd")][..], 70_000, Code::OutOfRange, "65536"),
        (&[("type", "cloud_ssd")], 40_000, Code::OutOfRange, "32768"),
        (
            &[("type", "cloud_auto"), ("provisionedIops", "60000")],
            1000,
            Code::InvalidArgument,
            "provisionedIops",
        ),
        (
            &[("type", "cloud_auto"), ("provisionedIops", "40000")],
            40,
            Code::OutOfRange,
            "40000",
        ),
        (
            &[("type", "cloud_essd"), ("performanceLevel", "PL3")],
            70_000,
            Code::OutOfRange,
            "65536",
        ),
    ] {
        let request = CreateVolumeRequest {
            parameters: parameters(class),
            capacity_range: Some(range(gib, gib)),
            ..new_volume("pvc-1")
        };
        let refused = stage.create(request).await.unwrap_err();
        assert_eq!(refused.code(), expected, "{class:?}: {refused}");
        assert!(refused.message().contains(part), "{class:?}: {refused}");
    }
    assert_eq!((stage.calls("CreateDisk"), stage.disks().len()), (0, 0));
}
