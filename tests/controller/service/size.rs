//! Sizes of volumes: capacity ranges, returned sizes and limits of the category.

use crate::service::kit::*;

#[tokio::test(start_paused = true)]
async fn returned_sizes_are_actual_and_limits_are_enforced() {
    let stage = Stage::new(&[]);

    let made = stage.create(sized("pvc-1", 30, 40)).await.unwrap();
    assert_eq!(made.capacity_bytes, 30 << 30);
    // The existing volume satisfies the request and is returned.
    let again = stage.create(sized("pvc-1", 25, 40)).await.unwrap();
    assert_eq!((&again.volume_id, again.capacity_bytes), (&made.volume_id, 30 << 30));
    assert_eq!(code(stage.create(sized("pvc-1", 10, 25)).await), Code::AlreadyExists);
    // The category has no size within the limit.
    assert_eq!(code(stage.create(sized("pvc-2", 5, 10)).await), Code::OutOfRange);
    assert_eq!(stage.expand(&made.volume_id, 20).await.unwrap().0, 30);
    let expand = async |required, limit| stage.expand_as(&made.volume_id, range(required, limit), mount()).await;
    assert_eq!(code(expand(20, 25).await), Code::OutOfRange);
    assert_eq!(expand(35, 35).await.unwrap().0, 35);
    let grown = stage.cloud.calls().into_iter();
    let grown = grown.filter(|call| call.action == "ResizeDisk" && call.status == Some(200));
    assert_eq!((stage.disks().len(), grown.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn sizes_and_iops_out_of_range_are_rejected_before_any_cloud_call() {
    let stage = Stage::new(&[]);
    let auto = ("type", "cloud_auto");
    for (class, gib, expected, part) in [
        (&[("type", "cloud_essd")][..], 70_000, Code::OutOfRange, "65536"),
        (&[("type", "cloud_ssd")], 40_000, Code::OutOfRange, "32768"),
        (
            &[auto, ("provisionedIops", "60000")],
            1000,
            Code::InvalidArgument,
            "provisionedIops",
        ),
        (&[auto, ("provisionedIops", "40000")], 40, Code::OutOfRange, "40000"),
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
        assert_error(stage.create(request).await, expected, &[part]);
    }
    assert_eq!((stage.calls("CreateDisk"), stage.disks().len()), (0, 0));
}
