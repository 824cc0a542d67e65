//! Modifying category, performance level, IOPS and bursting.

use diskplugin::model::{Task, TaskStatus};

use crate::contract::world::*;

async fn task(ecs: &Client, of: &DiskId) -> Task {
    let query = DescribeTasks::Disk(of.clone());
    let page = ecs.describe_tasks(deadline(), &query).await.unwrap();
    page.rows.into_iter().next().unwrap()
}

contract!(a_dry_run_changes_nothing_and_reports_the_result, |ecs, _| {
    let disk = create_essd(ecs, "dry").await;
    let dry = ModifyDiskSpec {
        dry_run: true,
        ..to_auto(&disk)
    };
    assert_eq!(code(modify(ecs, &dry).await), "DryRunOperation");
    assert_eq!(described(ecs, &disk).await.unwrap().category, Category::CloudEssd);
    let same = ModifyDiskSpec {
        performance_level: Some(PerformanceLevel::Pl1),
        dry_run: true,
        ..to_category(&disk, Category::CloudEssd)
    };
    let rejected = code(modify(ecs, &same).await);
    assert_eq!(rejected, "NoChangeInDiskCategoryAndPerformanceLevel");
});

contract!(a_new_performance_level_applies_immediately, |ecs, _| {
    let disk = disk_of(ecs, "level", Category::CloudEssd, 500).await;
    let request = ModifyDiskSpec {
        performance_level: Some(PerformanceLevel::Pl2),
        ..to(&disk)
    };
    assert_eq!(modify(ecs, &request).await.unwrap(), None);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.performance_level.as_deref(), Some("PL2"));
});

contract!(a_new_category_requires_a_task, |ecs, world| {
    world.configure(json!({"delays": {"modify": "60s"}}));
    let disk = create_essd(ecs, "auto").await;
    let request = ModifyDiskSpec {
        provisioned_iops: Some(1000),
        ..to_auto(&disk)
    };
    let id = modify(ecs, &request).await.unwrap();
    let running = task(ecs, &disk).await;
    assert_eq!((Some(running.id), running.status), (id, TaskStatus::Processing));
    assert_eq!(running.resource, disk.as_str());
    assert_eq!(described(ecs, &disk).await.unwrap().category, Category::CloudEssd);
    world.pass(60);
    assert_eq!(task(ecs, &disk).await.status, TaskStatus::Finished);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!((row.category, row.provisioned_iops), (Category::CloudAuto, 1000));
    assert_eq!(row.performance_level, None);
});

contract!(a_failed_task_leaves_the_disk_unchanged, |ecs, world| {
    world.configure(json!({"faults": [{"action": "ModifyDiskSpec", "kind": "fails-later"}]}));
    let disk = create_essd(ecs, "failing").await;
    let id = modify(ecs, &to_auto(&disk)).await.unwrap();
    let ended = task(ecs, &disk).await;
    assert_eq!((Some(ended.id), ended.status), (id, TaskStatus::Failed));
    assert_eq!(described(ecs, &disk).await.unwrap().category, Category::CloudEssd);
});

contract!(tasks_are_listed_by_id_and_by_disk_the_newest_first, |ecs, world| {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let mut ids = Vec::new();
    for (disk, category) in [
        (&one, Category::CloudAuto),
        (&two, Category::CloudAuto),
        (&one, Category::CloudEssd),
    ] {
        let id = modify(ecs, &to_category(disk, category)).await.unwrap();
        ids.push(id.unwrap());
        world.pass(1);
    }
    let query = DescribeTasks::Disk(one.clone());
    let page = ecs.describe_tasks(deadline(), &query).await.unwrap();
    let of_one: Vec<_> = page.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(of_one, [ids[2].clone(), ids[0].clone()]);
    let query = DescribeTasks::Ids(vec![ids[1].clone(), "t-unknown".parse().unwrap()]);
    let page = ecs.describe_tasks(deadline(), &query).await.unwrap();
    assert_eq!((page.rows.len(), page.rows[0].id.clone()), (1, ids[1].clone()));
});

contract!(only_auto_disks_can_burst_and_not_while_they_change, |ecs, world| {
    let burst = async |disk: &DiskId, bursting| {
        let request = ModifyDiskAttribute {
            disk: disk.clone(),
            attribute: DiskAttribute::Bursting(bursting),
        };
        ecs.modify_disk_attribute(deadline(), &request).await
    };
    let essd = create_essd(ecs, "essd").await;
    let small = disk_of(ecs, "small", Category::CloudAuto, 3).await;
    for (disk, expected) in [
        (essd, "BurstingEnabledForDiskCategoryUnsupported"),
        (small, "InvalidBurstingEnabled.DiskSizeTooSmall"),
    ] {
        assert_eq!(code(burst(&disk, true).await), expected);
    }
    let disk = disk_of(ecs, "auto", Category::CloudAuto, 20).await;
    for on in [true, false] {
        burst(&disk, on).await.unwrap();
        assert_eq!(described(ecs, &disk).await.unwrap().bursting, on);
    }
    world.configure(json!({"delays": {"modify": "60s"}}));
    modify(ecs, &to_category(&disk, Category::CloudEssd)).await.unwrap();
    let rejected = code(burst(&disk, true).await);
    assert_eq!(rejected, "BurstingEnabledForModifyingDiskUnsupported");
});

contract!(deletion_with_the_instance_is_listed_and_switched, |ecs, _| {
    let disk = create_essd(ecs, "data").await;
    for value in [true, false] {
        let request = ModifyDiskAttribute {
            disk: disk.clone(),
            attribute: DiskAttribute::DeleteWithInstance(value),
        };
        ecs.modify_disk_attribute(deadline(), &request).await.unwrap();
        let row = described(ecs, &disk).await.unwrap();
        assert_eq!(row.delete_with_instance, value);
    }
});
