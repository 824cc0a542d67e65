//! Rejected modifications, with the error code for each reason.

use crate::contract::modify_requests::{auto, code, disk, to};
use crate::contract::world::*;

over_every_connection!(
    a_disk_with_a_running_task_rejects_other_changes,
    a_change_of_category_starts_a_cooling_period,
    what_fits_neither_disk_nor_category_is_refused_by_name,
    a_disk_that_grows_or_is_snapshotted_does_not_change,
    what_the_instance_does_not_take_or_nobody_sells_is_refused,
    modifying_a_missing_disk_is_not_found,
    an_internal_error_can_have_status_404,
);

pub(crate) async fn a_disk_with_a_running_task_rejects_other_changes(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"modify": "60s"}}));
    let disk = create_essd(ecs, "busy").await;
    modify(ecs, &auto(&disk)).await.unwrap();
    for (alternatives, wanted) in [("first", "InvalidStatus.DiskNotReady"), ("last", "IncorrectDiskStatus")] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        assert_eq!(code(modify(ecs, &auto(&disk)).await), wanted);
    }
    assert_eq!(code(ecs.delete_disk(deadline(), &disk).await), "IncorrectDiskStatus");
    world.pass(60);
    ecs.delete_disk(deadline(), &disk).await.unwrap();
}

pub(crate) async fn a_change_of_category_starts_a_cooling_period(ecs: &Client, world: &World) {
    world.configure(json!({"rules": {"cooling_period": "10m"}}));
    let disk = create_essd(ecs, "hot").await;
    modify(ecs, &auto(&disk)).await.unwrap();
    let back = ModifyDiskSpec {
        category: Some(Category::CloudEssd),
        ..to(&disk)
    };
    assert_eq!(code(modify(ecs, &back).await), "DiskInCoolingPeriod");
    world.pass(600);
    assert!(modify(ecs, &back).await.is_ok());
}

pub(crate) async fn what_fits_neither_disk_nor_category_is_refused_by_name(ecs: &Client, world: &World) {
    world.configure(json!({"rules": {"alternatives": "first"}}));
    let essd = create_essd(ecs, "essd").await;
    let auto_disk = disk(ecs, "auto", Category::CloudAuto, 20).await;
    let level = |disk: &DiskId, level| ModifyDiskSpec {
        performance_level: Some(level),
        ..to(disk)
    };
    let iops = |disk: &DiskId, iops| ModifyDiskSpec {
        provisioned_iops: Some(iops),
        ..to(disk)
    };
    let category = |category| ModifyDiskSpec {
        category: Some(category),
        ..to(&essd)
    };
    for (request, wanted) in [
        (level(&essd, PerformanceLevel::Pl0), "InvalidPerformanceLevel.TooLow"),
        (
            level(&essd, PerformanceLevel::Pl3),
            "OperationDenied.PerformanceLevelNotMatch",
        ),
        (
            level(&auto_disk, PerformanceLevel::Pl1),
            "InvalidPerformanceLevelParam.Mismatch",
        ),
        (iops(&essd, 100), "ProvisionedIopsForDiskCategoryUnsupported"),
        // 20 GiB: 1000 * 20 - 3000.
        (iops(&auto_disk, 17_001), "InvalidProvisionedIops.LimitExceed"),
        (category(Category::Cloud), "InvalidDiskCategory.ValueNotSupported"),
        (
            category(Category::CloudEssdEntry),
            "InvalidDiskCategory.ValueNotSupported",
        ),
    ] {
        assert_eq!(code(modify(ecs, &request).await), wanted, "{request:?}");
    }
    let most = iops(&auto_disk, 17_000);
    assert_eq!(modify(ecs, &most).await.unwrap(), None);
    let basic = disk(ecs, "basic", Category::Cloud, 20).await;
    assert_eq!(
        code(modify(ecs, &auto(&basic)).await),
        "InvalidDiskCategory.NotSupported"
    );
}

pub(crate) async fn a_disk_that_grows_or_is_snapshotted_does_not_change(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"resize": "10s", "cut": "10s"}}));
    let growing = create_essd(ecs, "growing").await;
    let request = ResizeDisk {
        disk: growing.clone(),
        size: Gib(30),
        mode: ResizeMode::Offline,
        token: ClientToken::derive("ResizeDisk", ["growing"]),
    };
    resize(ecs, &request).await.unwrap();
    assert_eq!(
        code(modify(ecs, &auto(&growing)).await),
        "OperationDenied.DiskExpansionUnfinished"
    );
    let cutting = create_essd(ecs, "cutting").await;
    snapshot(ecs, &snapshot_of(&cutting, "snap")).await.unwrap();
    assert_eq!(code(modify(ecs, &auto(&cutting)).await), "DiskCreatingSnapshot");
    world.pass(10);
    assert!(modify(ecs, &auto(&growing)).await.is_ok());
}

pub(crate) async fn what_the_instance_does_not_take_or_nobody_sells_is_refused(ecs: &Client, world: &World) {
    world.configure(json!({"out_of_stock": ["*/cloud_auto"]}));
    let disk = create_essd(ecs, "sold").await;
    assert_eq!(code(modify(ecs, &auto(&disk)).await), "OperationDenied.NoStock");
    let request = CreateDisk {
        zone: Some(zone(FAR_ZONE)),
        ..essd("far")
    };
    let disk = create(ecs, &request).await.unwrap();
    attach(ecs, &disk, "i-far").await.unwrap();
    let to_ssd = ModifyDiskSpec {
        category: Some(Category::CloudSsd),
        ..to(&disk)
    };
    let expect_error = modify(ecs, &to_ssd).await;
    assert!(
        matches!(
            &*code(expect_error),
            "InvalidInstanceType.NotSupportDiskCategory" | "InvalidDiskCategory.InstanceTypeUnsupported"
        ),
        "the instance takes no cloud_ssd"
    );
}

pub(crate) async fn modifying_a_missing_disk_is_not_found(ecs: &Client, _: &World) {
    let unknown: DiskId = "d-unknown".parse().unwrap();
    assert_eq!(code(modify(ecs, &auto(&unknown)).await), "InvalidDiskId.NotFound");
    let burst = ModifyDiskAttribute {
        disk: unknown.clone(),
        attribute: DiskAttribute::Bursting(true),
    };
    assert_eq!(
        code(ecs.modify_disk_attribute(deadline(), &burst).await),
        "InvalidDiskId.NotFound"
    );
    let query = DescribeTasks::Disk(unknown);
    let page = ecs.describe_tasks(deadline(), &query).await.unwrap();
    assert!(page.rows.is_empty());
}

pub(crate) async fn an_internal_error_can_have_status_404(ecs: &Client, world: &World) {
    let disk = create_essd(ecs, "error").await;
    world.configure(json!({"faults": [{"action": "ModifyDiskSpec",
        "kind": {"code": {"status": 404, "code": "InternalError"}}}]}));
    // It is repeated, unlike the call of a disk that does not exist.
    let outcome = modify(ecs, &auto(&disk)).await;
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(world.calls("ModifyDiskSpec"), 2);
}
