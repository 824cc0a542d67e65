//! Conversion of the trait's requests to API parameters, for the API in memory.

use crate::cloud::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeSnapshotGroups,
    DescribeTasks, DetachDisk, DiskAttribute, ModifyDiskAttribute, ModifyDiskSpec, ResizeDisk,
    ResizeMode, TagTarget,
};
use crate::model::{DiskId, SnapshotId, TaskId};

use super::params::Params;

pub(crate) fn create_disk(region: Params, request: &CreateDisk) -> Params {
    let level = request.performance_level.map(|level| level.as_str());
    let snapshot = request.snapshot.as_ref().map(SnapshotId::as_str);
    region
        .with("DiskCategory", request.category.as_str())
        .with("Size", request.size.0.to_string())
        .with("DiskName", &request.name)
        .with("Encrypted", request.encrypted.to_string())
        .with("ClientToken", request.token.as_str())
        .with_opt("ZoneId", request.zone.as_ref().map(|zone| zone.as_str()))
        .with_opt("PerformanceLevel", level)
        .with_opt(
            "ProvisionedIops",
            request.provisioned_iops.map(|iops| iops.to_string()),
        )
        .with_opt("BurstingEnabled", request.bursting.then_some("true"))
        .with_opt("MultiAttach", request.multi_attach.then_some("Enabled"))
        .with_opt("ResourceGroupId", request.resource_group.as_deref())
        .with_opt("SnapshotId", snapshot)
        .with_opt("KMSKeyId", request.kms_key.as_deref())
        .with_tags(&request.tags)
}

pub(crate) fn attach_disk(request: &AttachDisk) -> Params {
    let delete = request.delete_with_instance.then_some("true");
    Params::default()
        .with("DiskId", request.disk.as_str())
        .with("InstanceId", request.instance.as_str())
        .with_opt("Force", request.force.then_some("true"))
        .with_opt("DeleteWithInstance", delete)
}

pub(crate) fn detach_disk(request: &DetachDisk) -> Params {
    let delete = request.delete_with_instance.then_some("true");
    Params::default()
        .with("DiskId", request.disk.as_str())
        .with("InstanceId", request.instance.as_str())
        .with_opt("DeleteWithInstance", delete)
}

pub(crate) fn resize_disk(request: &ResizeDisk) -> Params {
    let mode = match request.mode {
        ResizeMode::Online => "online",
        ResizeMode::Offline => "offline",
    };
    Params::default()
        .with("DiskId", request.disk.as_str())
        .with("NewSize", request.size.0.to_string())
        .with("Type", mode)
        .with("ClientToken", request.token.as_str())
}

pub(crate) fn modify_spec(request: &ModifyDiskSpec) -> Params {
    let level = request.performance_level.map(|level| level.as_str());
    let iops = request.provisioned_iops.map(|iops| iops.to_string());
    Params::default()
        .with("DiskId", request.disk.as_str())
        .with_opt(
            "DiskCategory",
            request.category.as_ref().map(|c| c.as_str()),
        )
        .with_opt("PerformanceLevel", level)
        .with_opt("ProvisionedIops", iops)
        .with_opt("DryRun", request.dry_run.then_some("true"))
}

pub(crate) fn modify_attribute(region: Params, request: &ModifyDiskAttribute) -> Params {
    let (name, value) = match request.attribute {
        DiskAttribute::Bursting(value) => ("BurstingEnabled", value),
        DiskAttribute::DeleteWithInstance(value) => ("DeleteWithInstance", value),
    };
    region
        .with("DiskId", request.disk.as_str())
        .with(name, value.to_string())
}

pub(crate) fn describe_tasks(region: Params, query: &DescribeTasks) -> Params {
    let params = region
        .with("TaskAction", "ModifyDiskSpec")
        .with("PageSize", "100")
        .with("PageNumber", "1");
    match query {
        DescribeTasks::Ids(ids) => {
            let ids: Vec<_> = ids.iter().map(TaskId::as_str).collect();
            params.with("TaskIds", ids.join(","))
        }
        DescribeTasks::Disk(disk) => params.with("ResourceIds.1", disk.as_str()),
    }
}

pub(crate) fn describe_health(region: Params, disks: &[DiskId]) -> Params {
    region
        .with("PageSize", "100")
        .with("PageNumber", "1")
        .with_list("DiskId", disks)
}

pub(crate) fn create_snapshot(request: &CreateSnapshot) -> Params {
    let days = request.retention_days.map(|days| days.to_string());
    Params::default()
        .with("DiskId", request.disk.as_str())
        .with("SnapshotName", &request.name)
        .with("ClientToken", request.token.as_str())
        .with_opt("RetentionDays", days)
        .with_opt("ResourceGroupId", request.resource_group.as_deref())
        .with_tags(&request.tags)
}

pub(crate) fn create_snapshot_group(region: Params, request: &CreateSnapshotGroup) -> Params {
    let mut params = region
        .with("Name", &request.name)
        .with("ClientToken", request.token.as_str())
        .with_opt("ResourceGroupId", request.resource_group.as_deref())
        .with_tags(&request.tags);
    for (n, disk) in (1..).zip(&request.disks) {
        params.set(format!("DiskId.{n}"), disk.as_str());
    }
    params
}

pub(crate) fn describe_snapshot_groups(region: Params, query: &DescribeSnapshotGroups) -> Params {
    let mut params = region
        .with("MaxResults", "100")
        .with_opt("NextToken", query.next.as_deref())
        .with_tags(&query.tags);
    for (n, group) in (1..).zip(query.ids.iter().flatten()) {
        params.set(format!("SnapshotGroupId.{n}"), group.as_str());
    }
    params
}

pub(crate) fn targets(region: Params, targets: &TagTarget) -> Params {
    match targets {
        TagTarget::Disks(ids) => region
            .with("ResourceType", "disk")
            .with_list("ResourceId", ids),
        TagTarget::Snapshots(ids) => region
            .with("ResourceType", "snapshot")
            .with_list("ResourceId", ids),
    }
}

/// IDs as a JSON array.
pub(crate) fn id_array<T: AsRef<str>>(ids: impl Iterator<Item = T>) -> String {
    let ids: Vec<serde_json::Value> = ids.map(|id| id.as_ref().into()).collect();
    serde_json::Value::from(ids).to_string()
}

/// The page size, by default the one that the trait guarantees.
pub(crate) fn page_size(wanted: Option<u32>) -> String {
    wanted.unwrap_or(100).to_string()
}
