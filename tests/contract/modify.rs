//! Modifying category, performance level, IOPS and bursting.

use diskplugin::cloud::{
    CreateDisk, DescribeTasks, EcsApi, Error, Kind, ModifyDiskAttribute, ModifyDiskSpec,
    ResizeDisk, ResizeMode,
};
use diskplugin::model::{Category, ClientToken, DiskId, Gib, PerformanceLevel, Task, TaskStatus};
use serde_json::json;

use crate::world::{
    FAR_ZONE, World, attach_to, create_essd, deadline, described, essd, snapshot_of, zone,
};

on_every_implementation!(
    a_dry_run_changes_nothing_and_tells_what_would_be_taken,
    a_new_performance_level_applies_immediately,
    a_new_category_requires_a_task,
    a_failed_task_leaves_the_disk_unchanged,
    a_disk_with_a_running_task_rejects_other_changes,
    tasks_are_listed_by_id_and_by_disk_the_newest_first,
    a_change_of_category_starts_a_cooling_period,
    what_fits_neither_disk_nor_category_is_refused_by_name,
    a_disk_that_grows_or_is_snapshotted_does_not_change,
    what_the_instance_does_not_take_or_nobody_sells_is_refused,
    bursting_is_switched_for_auto_disks_and_not_while_they_change,
    modifying_a_missing_disk_is_not_found,
    an_internal_error_can_have_status_404,
);

pub(crate) fn to(disk: &DiskId) -> ModifyDiskSpec {
    ModifyDiskSpec {
        disk: disk.clone(),
        category: None,
        performance_level: None,
        provisioned_iops: None,
        dry_run: false,
    }
}

fn auto(disk: &DiskId) -> ModifyDiskSpec {
    ModifyDiskSpec {
        category: Some(Category::CloudAuto),
        ..to(disk)
    }
}

async fn disk(ecs: &dyn EcsApi, name: &str, category: Category, size: u32) -> DiskId {
    let request = CreateDisk {
        category,
        size: Gib(size),
        ..essd(name)
    };
    ecs.create_disk(deadline(), &request).await.unwrap()
}

#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.unwrap_err().code().unwrap_or_default().to_owned()
}

async fn task(ecs: &dyn EcsApi, of: &DiskId) -> Task {
    let query = DescribeTasks::Disk(of.clone());
    let page = ecs.describe_tasks(deadline(), &query).await.unwrap();
    page.rows.into_iter().next().unwrap()
}

pub(crate) async fn a_dry_run_changes_nothing_and_tells_what_would_be_taken(
    ecs: &dyn EcsApi,
    _: &World,
) {
    let disk = create_essd(ecs, "dry").await;
    let dry = ModifyDiskSpec {
        dry_run: true,
        ..auto(&disk)
    };
    assert_eq!(
        code(ecs.modify_disk_spec(deadline(), &dry).await),
        "DryRunOperation"
    );
    assert_eq!(
        described(ecs, &disk).await.unwrap().category,
        Category::CloudEssd
    );
    let same = ModifyDiskSpec {
        category: Some(Category::CloudEssd),
        performance_level: Some(PerformanceLevel::Pl1),
        dry_run: true,
        ..to(&disk)
    };
    assert_eq!(
        code(ecs.modify_disk_spec(deadline(), &same).await),
        "NoChangeInDiskCategoryAndPerformanceLevel"
    );
}

pub(crate) async fn a_new_performance_level_applies_immediately(ecs: &dyn EcsApi, _: &World) {
    let disk = disk(ecs, "level", Category::CloudEssd, 500).await;
    let request = ModifyDiskSpec {
        performance_level: Some(PerformanceLevel::Pl2),
        ..to(&disk)
    };
    let task = ecs.modify_disk_spec(deadline(), &request).await.unwrap();
    assert_eq!(task, None);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.performance_level.as_deref(), Some("PL2"));
}

pub(crate) async fn a_new_category_requires_a_task(ecs: &dyn EcsApi, world: &World) {
    world.configure(json!({"delays": {"modify": "60s"}}));
    let disk = create_essd(ecs, "auto").await;
    let request = ModifyDiskSpec {
        provisioned_iops: Some(1000),
        ..auto(&disk)
    };
    let id = ecs.modify_disk_spec(deadline(), &request).await.unwrap();
    let running = task(ecs, &disk).await;
    assert_eq!(
        (Some(running.id), running.status),
        (id, TaskStatus::Processing)
    );
    assert_eq!(running.resource, disk.as_str());
    assert_eq!(
        described(ecs, &disk).await.unwrap().category,
        Category::CloudEssd
    );
    world.pass(60);
    assert_eq!(task(ecs, &disk).await.status, TaskStatus::Finished);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(
        (row.category, row.provisioned_iops),
        (Category::CloudAuto, 1000)
    );
    assert_eq!(row.performance_level, None);
}

pub(crate) async fn a_failed_task_leaves_the_disk_unchanged(ecs: &dyn EcsApi, world: &World) {
    world.configure(json!({"faults": [{"action": "ModifyDiskSpec", "kind": "fails-later"}]}));
    let disk = create_essd(ecs, "failing").await;
    let id = ecs
        .modify_disk_spec(deadline(), &auto(&disk))
        .await
        .unwrap();
    let ended = task(ecs, &disk).await;
    assert_eq!((Some(ended.id), ended.status), (id, TaskStatus::Failed));
    assert_eq!(
        described(ecs, &disk).await.unwrap().category,
        Category::CloudEssd
    );
}

pub(crate) async fn a_disk_with_a_running_task_rejects_other_changes(
    ecs: &dyn EcsApi,
    world: &World,
) {
    world.configure(json!({"delays": {"modify": "60s"}}));
    let disk = create_essd(ecs, "busy").await;
    ecs.modify_disk_spec(deadline(), &auto(&disk))
        .await
        .unwrap();
    for (alternatives, wanted) in [
        ("first", "InvalidStatus.DiskNotReady"),
        ("last", "IncorrectDiskStatus"),
    ] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        let again = ecs.modify_disk_spec(deadline(), &auto(&disk)).await;
        assert_eq!(code(again), wanted);
    }
    let gone = ecs.delete_disk(deadline(), &disk).await;
    assert_eq!(code(gone), "IncorrectDiskStatus");
    world.pass(60);
    ecs.delete_disk(deadline(), &disk).await.unwrap();
}

pub(crate) async fn tasks_are_listed_by_id_and_by_disk_the_newest_first(
    ecs: &dyn EcsApi,
    world: &World,
) {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let mut ids = Vec::new();
    for (disk, category) in [
        (&one, Category::CloudAuto),
        (&two, Category::CloudAuto),
        (&one, Category::CloudEssd),
    ] {
        let request = ModifyDiskSpec {
            category: Some(category),
            ..to(disk)
        };
        let id = ecs.modify_disk_spec(deadline(), &request).await.unwrap();
        ids.push(id.unwrap());
        world.pass(1);
    }
    let query = DescribeTasks::Disk(one.clone());
    let page = ecs.describe_tasks(deadline(), &query).await.unwrap();
    let of_one: Vec<_> = page.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(of_one, [ids[2].clone(), ids[0].clone()]);
    let query = DescribeTasks::Ids(vec![ids[1].clone(), "t-unknown".parse().unwrap()]);
    let page = ecs.describe_tasks(deadline(), &query).await.unwrap();
    assert_eq!(
        (page.rows.len(), page.rows[0].id.clone()),
        (1, ids[1].clone())
    );
}

pub(crate) async fn a_change_of_category_starts_a_cooling_period(ecs: &dyn EcsApi, world: &World) {
    world.configure(json!({"rules": {"cooling_period": "10m"}}));
    let disk = create_essd(ecs, "hot").await;
    ecs.modify_disk_spec(deadline(), &auto(&disk))
        .await
        .unwrap();
    let back = ModifyDiskSpec {
        category: Some(Category::CloudEssd),
        ..to(&disk)
    };
    let expect_error = ecs.modify_disk_spec(deadline(), &back).await;
    assert_eq!(code(expect_error), "DiskInCoolingPeriod");
    world.pass(600);
    assert!(ecs.modify_disk_spec(deadline(), &back).await.is_ok());
}

pub(crate) async fn what_fits_neither_disk_nor_category_is_refused_by_name(
    ecs: &dyn EcsApi,
    world: &World,
) {
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
        (
            level(&essd, PerformanceLevel::Pl0),
            "InvalidPerformanceLevel.TooLow",
        ),
        (
            level(&essd, PerformanceLevel::Pl3),
            "OperationDenied.PerformanceLevelNotMatch",
        ),
        (
            level(&auto_disk, PerformanceLevel::Pl1),
            "InvalidPerformanceLevelParam.Mismatch",
        ),
        (
            iops(&essd, 100),
            "ProvisionedIopsForDiskCategoryUnsupported",
        ),
        // 20 GiB: 1000 * 20 - 3000.
        (
            iops(&auto_disk, 17_001),
            "InvalidProvisionedIops.LimitExceed",
        ),
        (
            category(Category::Cloud),
            "InvalidDiskCategory.ValueNotSupported",
        ),
        (
            category(Category::CloudEssdEntry),
            "InvalidDiskCategory.ValueNotSupported",
        ),
    ] {
        let expect_error = ecs.modify_disk_spec(deadline(), &request).await;
        assert_eq!(code(expect_error), wanted, "{request:?}");
    }
    let most = iops(&auto_disk, 17_000);
    assert_eq!(ecs.modify_disk_spec(deadline(), &most).await.unwrap(), None);
    let basic = disk(ecs, "basic", Category::Cloud, 20).await;
    let expect_error = ecs.modify_disk_spec(deadline(), &auto(&basic)).await;
    assert_eq!(code(expect_error), "InvalidDiskCategory.NotSupported");
}

pub(crate) async fn a_disk_that_grows_or_is_snapshotted_does_not_change(
    ecs: &dyn EcsApi,
    world: &World,
) {
    world.configure(json!({"delays": {"resize": "10s", "cut": "10s"}}));
    let growing = create_essd(ecs, "growing").await;
    let request = ResizeDisk {
        disk: growing.clone(),
        size: Gib(30),
        mode: ResizeMode::Offline,
        token: ClientToken::derive("ResizeDisk", ["growing"]),
    };
    ecs.resize_disk(deadline(), &request).await.unwrap();
    let expect_error = ecs.modify_disk_spec(deadline(), &auto(&growing)).await;
    assert_eq!(
        code(expect_error),
        "OperationDenied.DiskExpansionUnfinished"
    );
    let cutting = create_essd(ecs, "cutting").await;
    ecs.create_snapshot(deadline(), &snapshot_of(&cutting, "snap"))
        .await
        .unwrap();
    let expect_error = ecs.modify_disk_spec(deadline(), &auto(&cutting)).await;
    assert_eq!(code(expect_error), "DiskCreatingSnapshot");
    world.pass(10);
    assert!(
        ecs.modify_disk_spec(deadline(), &auto(&growing))
            .await
            .is_ok()
    );
}

pub(crate) async fn what_the_instance_does_not_take_or_nobody_sells_is_refused(
    ecs: &dyn EcsApi,
    world: &World,
) {
    world.configure(json!({"out_of_stock": ["*/cloud_auto"]}));
    let disk = create_essd(ecs, "sold").await;
    let expect_error = ecs.modify_disk_spec(deadline(), &auto(&disk)).await;
    assert_eq!(code(expect_error), "OperationDenied.NoStock");
    let request = CreateDisk {
        zone: Some(zone(FAR_ZONE)),
        ..essd("far")
    };
    let disk = ecs.create_disk(deadline(), &request).await.unwrap();
    ecs.attach_disk(deadline(), &attach_to(&disk, "i-far"))
        .await
        .unwrap();
    let to_ssd = ModifyDiskSpec {
        category: Some(Category::CloudSsd),
        ..to(&disk)
    };
    let expect_error = ecs.modify_disk_spec(deadline(), &to_ssd).await;
    assert!(
        matches!(
            &*code(expect_error),
            "InvalidInstanceType.NotSupportDiskCategory"
                | "InvalidDiskCategory.InstanceTypeUnsupported"
        ),
        "the instance takes no cloud_ssd"
    );
}

pub(crate) async fn bursting_is_switched_for_auto_disks_and_not_while_they_change(
    ecs: &dyn EcsApi,
    world: &World,
) {
    let burst = |disk: &DiskId, bursting| ModifyDiskAttribute {
        disk: disk.clone(),
        bursting,
    };
    let essd = create_essd(ecs, "essd").await;
    let expect_error = ecs
        .modify_disk_attribute(deadline(), &burst(&essd, true))
        .await;
    assert_eq!(
        code(expect_error),
        "BurstingEnabledForDiskCategoryUnsupported"
    );
    let small = disk(ecs, "small", Category::CloudAuto, 3).await;
    let expect_error = ecs
        .modify_disk_attribute(deadline(), &burst(&small, true))
        .await;
    assert_eq!(
        code(expect_error),
        "InvalidBurstingEnabled.DiskSizeTooSmall"
    );
    let disk = disk(ecs, "auto", Category::CloudAuto, 20).await;
    for on in [true, false] {
        ecs.modify_disk_attribute(deadline(), &burst(&disk, on))
            .await
            .unwrap();
        assert_eq!(described(ecs, &disk).await.unwrap().bursting, on);
    }
    world.configure(json!({"delays": {"modify": "60s"}}));
    let back = ModifyDiskSpec {
        category: Some(Category::CloudEssd),
        ..to(&disk)
    };
    ecs.modify_disk_spec(deadline(), &back).await.unwrap();
    let expect_error = ecs
        .modify_disk_attribute(deadline(), &burst(&disk, true))
        .await;
    assert_eq!(
        code(expect_error),
        "BurstingEnabledForModifyingDiskUnsupported"
    );
}

pub(crate) async fn modifying_a_missing_disk_is_not_found(ecs: &dyn EcsApi, _: &World) {
    let unknown: DiskId = "d-unknown".parse().unwrap();
    let expect_error = ecs.modify_disk_spec(deadline(), &auto(&unknown)).await;
    assert_eq!(code(expect_error), "InvalidDiskId.NotFound");
    let burst = ModifyDiskAttribute {
        disk: unknown.clone(),
        bursting: true,
    };
    let expect_error = ecs.modify_disk_attribute(deadline(), &burst).await;
    assert_eq!(code(expect_error), "InvalidDiskId.NotFound");
    let query = DescribeTasks::Disk(unknown);
    let page = ecs.describe_tasks(deadline(), &query).await.unwrap();
    assert!(page.rows.is_empty());
}

pub(crate) async fn an_internal_error_can_have_status_404(ecs: &dyn EcsApi, world: &World) {
    let disk = create_essd(ecs, "error").await;
    world.configure(
        json!({"faults": [{"action": "ModifyDiskSpec", "times": 1000,
        "kind": {"code": {"status": 404, "code": "InternalError"}}}]}),
    );
    let error = ecs
        .modify_disk_spec(
            diskplugin::base::Deadline::after(std::time::Duration::from_secs(1)),
            &auto(&disk),
        )
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Ambiguous, "{error}");
}
