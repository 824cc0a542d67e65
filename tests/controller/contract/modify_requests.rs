//! Requests that modify a disk, and the error codes of the responses.

use crate::contract::world::*;

pub(crate) fn to(disk: &DiskId) -> ModifyDiskSpec {
    ModifyDiskSpec {
        disk: disk.clone(),
        category: None,
        performance_level: None,
        provisioned_iops: None,
        dry_run: false,
    }
}

pub(crate) fn auto(disk: &DiskId) -> ModifyDiskSpec {
    ModifyDiskSpec {
        category: Some(Category::CloudAuto),
        ..to(disk)
    }
}

pub(crate) async fn disk(ecs: &Client, name: &str, category: Category, size: u32) -> DiskId {
    let request = CreateDisk {
        category,
        size: Gib(size),
        ..essd(name)
    };
    create(ecs, &request).await.unwrap()
}

#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(outcome: Result<T>) -> String {
    outcome.unwrap_err().code().unwrap_or_default().to_owned()
}
