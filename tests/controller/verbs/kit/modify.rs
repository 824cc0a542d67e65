//! Changes of disks, and the properties that they modify.

use diskplugin::model::Gib;

use super::*;

pub(crate) fn category_change(category: Category) -> Change {
    Change {
        category: Some(category),
        ..Change::default()
    }
}

pub(crate) fn tags(pairs: &[(&str, &str)]) -> Tags {
    let owned = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    pairs.iter().map(owned).collect()
}

/// Every property of an AutoPL disk that can be modified.
pub(crate) fn full_change() -> Change {
    Change {
        category: Some(Category::CloudAuto),
        provisioned_iops: Some(1000),
        bursting: Some(true),
        tags: tags(&[("team", "blue")]),
        ..Change::default()
    }
}

/// The current category, performance level, provisioned IOPS and bursting of the disk.
pub(crate) fn properties(setup: &Setup, disk: &DiskId) -> (String, Value, u64, bool) {
    let row = setup.row(disk);
    (
        row["category"].as_str().unwrap().to_owned(),
        row["level"].clone(),
        row["provisioned_iops"].as_u64().unwrap(),
        row["bursting"].as_bool().unwrap(),
    )
}

/// The properties after [`full_change`].
pub(crate) fn changed_properties() -> (String, Value, u64, bool) {
    ("cloud_auto".to_owned(), Value::Null, 1000, true)
}

pub(crate) async fn disk_of(setup: &Setup, category: Category, size: u32) -> DiskId {
    let request = ecs::CreateDisk {
        category,
        size: Gib(size),
        ..essd("external")
    };
    client(&setup.cloud).create_disk(minutes(1), &request).await.unwrap()
}

pub(crate) async fn modify(setup: &Setup, disk: &DiskId, change: &Change) {
    let modified = with_retries(|| setup.try_modify(minutes(1), disk, change)).await;
    expect("modify", modified);
}

/// Number of calls that change the disk, without dry runs.
pub(crate) fn writes(setup: &Setup) -> u64 {
    let calls = setup.cloud.calls().into_iter();
    let dry_runs = calls.filter(|call| call.params.contains_key("DryRun")).count();
    setup.calls("ModifyDiskSpec") - u64::try_from(dry_runs).unwrap()
        + setup.calls("ModifyDiskAttribute")
        + setup.calls("TagResources")
}
