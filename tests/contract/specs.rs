//! Disks change their category, level, IOPS and bursting.

use diskplugin::cloud::{
    CreateDisk, DescribeTasks, Ecs, Error, Kind, ModifyDiskAttribute, ModifyDiskSpec, ResizeDisk,
    ResizeMode,
};
use diskplugin::model::{Category, ClientToken, DiskId, Gib, PerformanceLevel, Task, TaskStatus};
use serde_json::json;

use crate::world::{FAR_ZONE, World, cut, essd, made, onto, seen, soon, zone};

on_every_face!(
    a_dry_run_changes_nothing_and_tells_what_would_be_taken,
    another_level_is_had_at_once,
    another_category_takes_a_task_that_finishes,
    a_task_that_fails_leaves_the_disk_as_it_was,
    while_a_task_runs_the_disk_takes_no_other_order,
    tasks_are_listed_by_id_and_by_disk_the_newest_first,
    a_disk_cools_after_its_category_was_changed,
    what_fits_neither_disk_nor_category_is_refused_by_name,
    a_disk_that_grows_or_is_snapshotted_does_not_change,
    what_the_instance_does_not_take_or_nobody_sells_is_refused,
    bursting_is_switched_for_auto_disks_and_not_while_they_change,
    what_is_not_there_does_not_change,
    an_internal_error_may_come_as_404,
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

async fn disk(ecs: &dyn Ecs, name: &str, category: Category, size: u32) -> DiskId {
    let request = CreateDisk {
        category,
        size: Gib(size),
        ..essd(name)
    };
    ecs.create_disk(soon(), &request).await.unwrap()
}

#[track_caller]
fn code<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    outcome.unwrap_err().code().unwrap_or_default().to_owned()
}

async fn task(ecs: &dyn Ecs, of: &DiskId) -> Task {
    let query = DescribeTasks::Of(of.clone());
    let page = ecs.describe_tasks(soon(), &query).await.unwrap();
    page.rows.into_iter().next().unwrap()
}

pub(crate) async fn a_dry_run_changes_nothing_and_tells_what_would_be_taken(
    ecs: &dyn Ecs,
    _: &World,
) {
    let disk = made(ecs, "dry").await;
    let dry = ModifyDiskSpec {
        dry_run: true,
        ..auto(&disk)
    };
    assert_eq!(
        code(ecs.modify_disk_spec(soon(), &dry).await),
        "DryRunOperation"
    );
    assert_eq!(
        seen(ecs, &disk).await.unwrap().category,
        Category::CloudEssd
    );
    let same = ModifyDiskSpec {
        category: Some(Category::CloudEssd),
        performance_level: Some(PerformanceLevel::Pl1),
        dry_run: true,
        ..to(&disk)
    };
    assert_eq!(
        code(ecs.modify_disk_spec(soon(), &same).await),
        "NoChangeInDiskCategoryAndPerformanceLevel"
    );
}

pub(crate) async fn another_level_is_had_at_once(ecs: &dyn Ecs, _: &World) {
    let disk = disk(ecs, "level", Category::CloudEssd, 500).await;
    let request = ModifyDiskSpec {
        performance_level: Some(PerformanceLevel::Pl2),
        ..to(&disk)
    };
    let task = ecs.modify_disk_spec(soon(), &request).await.unwrap();
    assert_eq!(task, None);
    let row = seen(ecs, &disk).await.unwrap();
    assert_eq!(row.performance_level.as_deref(), Some("PL2"));
}

pub(crate) async fn another_category_takes_a_task_that_finishes(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"delays": {"modify": "60s"}}));
    let disk = made(ecs, "auto").await;
    let request = ModifyDiskSpec {
        provisioned_iops: Some(1000),
        ..auto(&disk)
    };
    let id = ecs.modify_disk_spec(soon(), &request).await.unwrap();
    let running = task(ecs, &disk).await;
    assert_eq!(
        (Some(running.id), running.status),
        (id, TaskStatus::Processing)
    );
    assert_eq!(running.resource, disk.as_str());
    assert_eq!(
        seen(ecs, &disk).await.unwrap().category,
        Category::CloudEssd
    );
    world.pass(60);
    assert_eq!(task(ecs, &disk).await.status, TaskStatus::Finished);
    let row = seen(ecs, &disk).await.unwrap();
    assert_eq!(
        (row.category, row.provisioned_iops),
        (Category::CloudAuto, 1000)
    );
    assert_eq!(row.performance_level, None);
}

pub(crate) async fn a_task_that_fails_leaves_the_disk_as_it_was(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"faults": [{"action": "ModifyDiskSpec", "kind": "fails-later"}]}));
    let disk = made(ecs, "failing").await;
    let id = ecs.modify_disk_spec(soon(), &auto(&disk)).await.unwrap();
    let ended = task(ecs, &disk).await;
    assert_eq!((Some(ended.id), ended.status), (id, TaskStatus::Failed));
    assert_eq!(
        seen(ecs, &disk).await.unwrap().category,
        Category::CloudEssd
    );
}

pub(crate) async fn while_a_task_runs_the_disk_takes_no_other_order(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"delays": {"modify": "60s"}}));
    let disk = made(ecs, "busy").await;
    ecs.modify_disk_spec(soon(), &auto(&disk)).await.unwrap();
    for (alternatives, wanted) in [
        ("first", "InvalidStatus.DiskNotReady"),
        ("last", "IncorrectDiskStatus"),
    ] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        let again = ecs.modify_disk_spec(soon(), &auto(&disk)).await;
        assert_eq!(code(again), wanted);
    }
    let gone = ecs.delete_disk(soon(), &disk).await;
    assert_eq!(code(gone), "IncorrectDiskStatus");
    world.pass(60);
    ecs.delete_disk(soon(), &disk).await.unwrap();
}

pub(crate) async fn tasks_are_listed_by_id_and_by_disk_the_newest_first(
    ecs: &dyn Ecs,
    world: &World,
) {
    let (one, two) = (made(ecs, "one").await, made(ecs, "two").await);
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
        let id = ecs.modify_disk_spec(soon(), &request).await.unwrap();
        ids.push(id.unwrap());
        world.pass(1);
    }
    let query = DescribeTasks::Of(one.clone());
    let page = ecs.describe_tasks(soon(), &query).await.unwrap();
    let of_one: Vec<_> = page.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(of_one, [ids[2].clone(), ids[0].clone()]);
    let query = DescribeTasks::These(vec![ids[1].clone(), "t-unknown".parse().unwrap()]);
    let page = ecs.describe_tasks(soon(), &query).await.unwrap();
    assert_eq!(
        (page.rows.len(), page.rows[0].id.clone()),
        (1, ids[1].clone())
    );
}

pub(crate) async fn a_disk_cools_after_its_category_was_changed(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"rules": {"cooling_period": "10m"}}));
    let disk = made(ecs, "hot").await;
    ecs.modify_disk_spec(soon(), &auto(&disk)).await.unwrap();
    let back = ModifyDiskSpec {
        category: Some(Category::CloudEssd),
        ..to(&disk)
    };
    let refused = ecs.modify_disk_spec(soon(), &back).await;
    assert_eq!(code(refused), "DiskInCoolingPeriod");
    world.pass(600);
    assert!(ecs.modify_disk_spec(soon(), &back).await.is_ok());
}

pub(crate) async fn what_fits_neither_disk_nor_category_is_refused_by_name(
    ecs: &dyn Ecs,
    world: &World,
) {
    world.configure(json!({"rules": {"alternatives": "first"}}));
    let essd = made(ecs, "essd").await;
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
        let refused = ecs.modify_disk_spec(soon(), &request).await;
        assert_eq!(code(refused), wanted, "{request:?}");
    }
    let most = iops(&auto_disk, 17_000);
    assert_eq!(ecs.modify_disk_spec(soon(), &most).await.unwrap(), None);
    let basic = disk(ecs, "basic", Category::Cloud, 20).await;
    let refused = ecs.modify_disk_spec(soon(), &auto(&basic)).await;
    assert_eq!(code(refused), "InvalidDiskCategory.NotSupported");
}

pub(crate) async fn a_disk_that_grows_or_is_snapshotted_does_not_change(
    ecs: &dyn Ecs,
    world: &World,
) {
    world.configure(json!({"delays": {"resize": "10s", "cut": "10s"}}));
    let growing = made(ecs, "growing").await;
    let request = ResizeDisk {
        disk: growing.clone(),
        size: Gib(30),
        mode: ResizeMode::Offline,
        token: ClientToken::derive("ResizeDisk", ["growing"]),
    };
    ecs.resize_disk(soon(), &request).await.unwrap();
    let refused = ecs.modify_disk_spec(soon(), &auto(&growing)).await;
    assert_eq!(code(refused), "OperationDenied.DiskExpansionUnfinished");
    let cutting = made(ecs, "cutting").await;
    ecs.create_snapshot(soon(), &cut(&cutting, "snap"))
        .await
        .unwrap();
    let refused = ecs.modify_disk_spec(soon(), &auto(&cutting)).await;
    assert_eq!(code(refused), "DiskCreatingSnapshot");
    world.pass(10);
    assert!(ecs.modify_disk_spec(soon(), &auto(&growing)).await.is_ok());
}

pub(crate) async fn what_the_instance_does_not_take_or_nobody_sells_is_refused(
    ecs: &dyn Ecs,
    world: &World,
) {
    world.configure(json!({"out_of_stock": ["*/cloud_auto"]}));
    let disk = made(ecs, "sold").await;
    let refused = ecs.modify_disk_spec(soon(), &auto(&disk)).await;
    assert_eq!(code(refused), "OperationDenied.NoStock");
    let request = CreateDisk {
        zone: Some(zone(FAR_ZONE)),
        ..essd("far")
    };
    let disk = ecs.create_disk(soon(), &request).await.unwrap();
    ecs.attach_disk(soon(), &onto(&disk, "i-far"))
        .await
        .unwrap();
    let to_ssd = ModifyDiskSpec {
        category: Some(Category::CloudSsd),
        ..to(&disk)
    };
    let refused = ecs.modify_disk_spec(soon(), &to_ssd).await;
    assert!(
        matches!(
            &*code(refused),
            "InvalidInstanceType.NotSupportDiskCategory"
                | "InvalidDiskCategory.InstanceTypeUnsupported"
        ),
        "the instance takes no cloud_ssd"
    );
}

pub(crate) async fn bursting_is_switched_for_auto_disks_and_not_while_they_change(
    ecs: &dyn Ecs,
    world: &World,
) {
    let burst = |disk: &DiskId, bursting| ModifyDiskAttribute {
        disk: disk.clone(),
        bursting,
    };
    let essd = made(ecs, "essd").await;
    let refused = ecs.modify_disk_attribute(soon(), &burst(&essd, true)).await;
    assert_eq!(code(refused), "BurstingEnabledForDiskCategoryUnsupported");
    let small = disk(ecs, "small", Category::CloudAuto, 3).await;
    let refused = ecs
        .modify_disk_attribute(soon(), &burst(&small, true))
        .await;
    assert_eq!(code(refused), "InvalidBurstingEnabled.DiskSizeTooSmall");
    let disk = disk(ecs, "auto", Category::CloudAuto, 20).await;
    for on in [true, false] {
        ecs.modify_disk_attribute(soon(), &burst(&disk, on))
            .await
            .unwrap();
        assert_eq!(seen(ecs, &disk).await.unwrap().bursting, on);
    }
    world.configure(json!({"delays": {"modify": "60s"}}));
    let back = ModifyDiskSpec {
        category: Some(Category::CloudEssd),
        ..to(&disk)
    };
    ecs.modify_disk_spec(soon(), &back).await.unwrap();
    let refused = ecs.modify_disk_attribute(soon(), &burst(&disk, true)).await;
    assert_eq!(code(refused), "BurstingEnabledForModifyingDiskUnsupported");
}

pub(crate) async fn what_is_not_there_does_not_change(ecs: &dyn Ecs, _: &World) {
    let unknown: DiskId = "d-unknown".parse().unwrap();
    let refused = ecs.modify_disk_spec(soon(), &auto(&unknown)).await;
    assert_eq!(code(refused), "InvalidDiskId.NotFound");
    let burst = ModifyDiskAttribute {
        disk: unknown.clone(),
        bursting: true,
    };
    let refused = ecs.modify_disk_attribute(soon(), &burst).await;
    assert_eq!(code(refused), "InvalidDiskId.NotFound");
    let query = DescribeTasks::Of(unknown);
    let page = ecs.describe_tasks(soon(), &query).await.unwrap();
    assert!(page.rows.is_empty());
}

pub(crate) async fn an_internal_error_may_come_as_404(ecs: &dyn Ecs, world: &World) {
    let disk = made(ecs, "error").await;
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
