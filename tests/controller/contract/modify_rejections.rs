//! Rejected modifications, with the error code for each reason.

use crate::contract::world::*;

contract!(a_disk_with_a_running_task_rejects_other_changes, |ecs, world| {
    world.configure(json!({"delays": {"modify": "60s"}}));
    let disk = create_essd(ecs, "busy").await;
    modify(ecs, &to_auto(&disk)).await.unwrap();
    for (alternatives, wanted) in [("first", "InvalidStatus.DiskNotReady"), ("last", "IncorrectDiskStatus")] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        assert_eq!(code(modify(ecs, &to_auto(&disk)).await), wanted);
    }
    assert_eq!(code(ecs.delete_disk(deadline(), &disk).await), "IncorrectDiskStatus");
    world.pass(60);
    ecs.delete_disk(deadline(), &disk).await.unwrap();
});

contract!(a_change_of_category_starts_a_cooling_period, |ecs, world| {
    world.configure(json!({"rules": {"cooling_period": "10m"}}));
    let disk = create_essd(ecs, "hot").await;
    modify(ecs, &to_auto(&disk)).await.unwrap();
    let back = to_category(&disk, Category::CloudEssd);
    assert_eq!(code(modify(ecs, &back).await), "DiskInCoolingPeriod");
    world.pass(600);
    assert!(modify(ecs, &back).await.is_ok());
});

contract!(unsupported_changes_are_rejected, |ecs, world| {
    world.configure(json!({"rules": {"alternatives": "first"}}));
    let essd = create_essd(ecs, "essd").await;
    let auto = disk_of(ecs, "auto", Category::CloudAuto, 20).await;
    let basic = disk_of(ecs, "basic", Category::Cloud, 20).await;
    let level = |disk: &DiskId, level| ModifyDiskSpec {
        performance_level: Some(level),
        ..to(disk)
    };
    let iops = |disk: &DiskId, iops| ModifyDiskSpec {
        provisioned_iops: Some(iops),
        ..to(disk)
    };
    for (request, wanted) in [
        (level(&essd, PerformanceLevel::Pl0), "InvalidPerformanceLevel.TooLow"),
        (
            level(&essd, PerformanceLevel::Pl3),
            "OperationDenied.PerformanceLevelNotMatch",
        ),
        (
            level(&auto, PerformanceLevel::Pl1),
            "InvalidPerformanceLevelParam.Mismatch",
        ),
        (iops(&essd, 100), "ProvisionedIopsForDiskCategoryUnsupported"),
        // 20 GiB: 1000 * 20 - 3000.
        (iops(&auto, 17_001), "InvalidProvisionedIops.LimitExceed"),
        (
            to_category(&essd, Category::Cloud),
            "InvalidDiskCategory.ValueNotSupported",
        ),
        (
            to_category(&essd, Category::CloudEssdEntry),
            "InvalidDiskCategory.ValueNotSupported",
        ),
        (to_auto(&basic), "InvalidDiskCategory.NotSupported"),
    ] {
        assert_eq!(code(modify(ecs, &request).await), wanted, "{request:?}");
    }
    assert_eq!(modify(ecs, &iops(&auto, 17_000)).await.unwrap(), None);
});

contract!(a_disk_is_not_modified_during_a_resize_or_a_snapshot, |ecs, world| {
    world.configure(json!({"delays": {"resize": "10s", "cut": "10s"}}));
    let (growing, cutting) = (create_essd(ecs, "growing").await, create_essd(ecs, "cutting").await);
    let request = resize_to(&growing, 30, ResizeMode::Offline);
    resize(ecs, &request).await.unwrap();
    snapshot(ecs, &snapshot_of(&cutting, "snap")).await.unwrap();
    for (disk, expected) in [
        (&growing, "OperationDenied.DiskExpansionUnfinished"),
        (&cutting, "DiskCreatingSnapshot"),
    ] {
        assert_eq!(code(modify(ecs, &to_auto(disk)).await), expected);
    }
    world.pass(10);
    assert!(modify(ecs, &to_auto(&growing)).await.is_ok());
});

contract!(an_unsupported_or_out_of_stock_category_is_rejected, |ecs, world| {
    world.configure(json!({"out_of_stock": ["*/cloud_auto"]}));
    let disk = create_essd(ecs, "out-of-stock").await;
    assert_eq!(code(modify(ecs, &to_auto(&disk)).await), "OperationDenied.NoStock");
    let far = essd_with("far", |disk| disk.zone = Some(zone(FAR_ZONE)));
    let disk = create(ecs, &far).await.unwrap();
    attach(ecs, &disk, "i-far").await.unwrap();
    let rejected = code(modify(ecs, &to_category(&disk, Category::CloudSsd)).await);
    let expected = [
        "InvalidInstanceType.NotSupportDiskCategory",
        "InvalidDiskCategory.InstanceTypeUnsupported",
    ];
    assert!(expected.contains(&rejected.as_str()), "{rejected}");
});

contract!(an_internal_error_can_have_status_404, |ecs, world| {
    let disk = create_essd(ecs, "error").await;
    world.configure(json!({"faults": [{"action": "ModifyDiskSpec",
        "kind": {"code": {"status": 404, "code": "InternalError"}}}]}));
    // The call is repeated, unlike that for a disk that does not exist.
    let outcome = modify(ecs, &to_auto(&disk)).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(world.calls("ModifyDiskSpec"), 2);
});
