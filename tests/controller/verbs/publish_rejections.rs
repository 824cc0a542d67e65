//! Permanent rejections of ControllerPublishVolume, with the error code of the cloud and the limit, counts, type or
//! category that explain it.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn the_error_for_a_full_node_states_its_limit_and_its_attached_disks() {
    let setup = Setup::new(&["--disk-quantity=3"]);
    for name in ["pvc-1", "pvc-2"] {
        let disk = setup.disk(name).await;
        setup.publish(&single_node(&disk, &node_one())).await.unwrap();
    }
    let disk = setup.disk("pvc-3").await;
    setup.cloud.clear_calls();
    setup.publish(&single_node(&disk, &node_two())).await.unwrap();
    assert_eq!(setup.calls("DescribeInstanceTypes"), 0);
    setup.detach(&disk, &node_two()).await;
    let parts = [
        disk.as_str(),
        "i-one",
        "ecs.g6.large supports",
        "including the system disk",
        "2 data disks are attached",
        "InstanceDiskLimitExceeded",
    ];
    // The second time, with the other documented status.
    for _ in 0..2 {
        let error = setup.publish(&single_node(&disk, &node_one())).await.unwrap_err();
        assert_error(&error, FailureKind::ResourceExhausted, &parts);
        setup.reject("AttachDisk", 400, "InstanceDiskLimitExceeded");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unsupported_instance_type_fails_the_precondition_and_the_error_names_type_and_category() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for (code, status) in [
        ("InvalidInstanceType.NotSupportDiskCategory", 403),
        ("InvalidInstanceType.NotSupportDiskCategory", 400),
        ("InvalidInstanceType.NvmeUnsupported", 403),
        ("InvalidInstanceType.NotSupportMultiAttachDisk", 403),
        ("InvalidOperation.InstanceTypeNotSupport", 400),
    ] {
        setup.reject("AttachDisk", status, code);
        let error = setup.publish(&single_node(&disk, &node_one())).await.unwrap_err();
        let parts = [disk.as_str(), "i-one", "ecs.g6.large", "cloud_essd", code, "RequestId"];
        assert_error(&error, FailureKind::FailedPrecondition, &parts);
    }
    // The rejection is returned even if the instance type cannot be read.
    setup.configure(&json!({"denied": ["DescribeInstances"]}));
    setup.reject("AttachDisk", 403, "InvalidInstanceType.NotSupportDiskCategory");
    let error = setup.publish(&single_node(&disk, &node_one())).await.unwrap_err();
    assert_names(&error, &["of type unknown"]);
}

#[tokio::test(start_paused = true)]
async fn a_disk_bound_to_one_instance_is_rejected_with_the_reason() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for (code, status, reason) in [
        ("DiskNotPortable", 403, "subscription"),
        ("DiskCategory.OperationNotSupported", 400, "belong to one instance"),
        (
            "InvalidOperation.OtherInstanceUnsupported",
            403,
            "stays with the first instance",
        ),
        ("DiskTypeViolation", 403, "system disk"),
    ] {
        setup.reject("AttachDisk", status, code);
        let error = setup.publish(&single_node(&disk, &node_one())).await.unwrap_err();
        let parts = [disk.as_str(), "i-one", reason, code];
        assert_error(&error, FailureKind::FailedPrecondition, &parts);
    }
    assert_eq!(setup.row(&disk)["attachments"], Value::Array(vec![]));
}
