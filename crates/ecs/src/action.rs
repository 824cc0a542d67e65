//! The requests of the actions. They serialize into their parameters ([`super::wire::params`]).

use serde::{Serialize, Serializer};
use serde_json::json;

use super::code::{self, Condition};
use crate::model::{
    Category, ClientToken, DiskId, Gib, InstanceId, PerformanceLevel, SnapshotGroupId, SnapshotId, Tags, TaskId, ZoneId,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreateDisk {
    /// None for a regional category, which has no zone.
    #[serde(rename = "ZoneId")]
    pub zone: Option<ZoneId>,
    #[serde(rename = "DiskCategory")]
    pub category: Category,
    /// `cloud_essd` only; none is the cloud's default, PL1.
    pub performance_level: Option<PerformanceLevel>,
    /// IOPS on top of the baseline; `cloud_auto` only.
    pub provisioned_iops: Option<u32>,
    /// Bursting beyond the baseline; `cloud_auto` only.
    #[serde(rename = "BurstingEnabled")]
    pub bursting: bool,
    #[serde(serialize_with = "enabled")]
    pub multi_attach: bool,
    /// None is the account's default resource group.
    #[serde(rename = "ResourceGroupId")]
    pub resource_group: Option<String>,
    /// At least the size of the snapshot.
    pub size: Gib,
    /// 2 to 128 characters, starting with a letter.
    #[serde(rename = "DiskName")]
    pub name: String,
    /// The source; none is a blank disk.
    #[serde(rename = "SnapshotId")]
    pub snapshot: Option<SnapshotId>,
    pub encrypted: bool,
    /// Requires `encrypted`. None is the account's service key.
    #[serde(rename = "KMSKeyId")]
    pub kms_key: Option<String>,
    /// The API accepts at most 20.
    #[serde(rename = "Tag", serialize_with = "tags")]
    pub tags: Tags,
    #[serde(rename = "ClientToken")]
    pub token: ClientToken,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct AttachDisk {
    #[serde(rename = "DiskId")]
    pub disk: DiskId,
    #[serde(rename = "InstanceId")]
    pub instance: InstanceId,
    /// Attach a regional disk even though an instance of another zone cannot detach it.
    pub force: bool,
    /// Delete the disk with the instance: required for elastic ephemeral disks, wrong for all others.
    pub delete_with_instance: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DetachDisk {
    #[serde(rename = "DiskId")]
    pub disk: DiskId,
    #[serde(rename = "InstanceId")]
    pub instance: InstanceId,
    pub delete_with_instance: bool,
}

/// `DescribeDisks`: all filters that are set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeDisks {
    /// At most 100. `Some(vec![])` matches nothing.
    #[serde(rename = "DiskIds", serialize_with = "json_text")]
    pub ids: Option<Vec<DiskId>>,
    #[serde(rename = "Tag", serialize_with = "tags")]
    pub tags: Tags,
    #[serde(rename = "InstanceId")]
    pub instance: Option<InstanceId>,
    /// Rows per page, 10 to 500; none is 100.
    #[serde(rename = "MaxResults")]
    pub page_size: Option<u32>,
    /// `NextToken` of the previous page.
    #[serde(rename = "NextToken")]
    pub next: Option<String>,
    /// List nothing; a valid request fails with [`Condition::DryRunAccepted`].
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ResizeDisk {
    #[serde(rename = "DiskId")]
    pub disk: DiskId,
    /// Larger than the current size.
    #[serde(rename = "NewSize")]
    pub size: Gib,
    #[serde(rename = "Type")]
    pub mode: ResizeMode,
    #[serde(rename = "ClientToken")]
    pub token: ClientToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResizeMode {
    /// While the instance runs, without a reboot.
    Online,
    /// While the disk is detached.
    Offline,
}

/// `ModifyDiskSpec`: at least one of the options is set; the others do not change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ModifyDiskSpec {
    #[serde(rename = "DiskId")]
    pub disk: DiskId,
    /// A change of the category is a task of minutes to hours.
    #[serde(rename = "DiskCategory")]
    pub category: Option<Category>,
    /// `cloud_essd` only; the change is synchronous.
    pub performance_level: Option<PerformanceLevel>,
    /// IOPS on top of the baseline; `cloud_auto` only.
    pub provisioned_iops: Option<u32>,
    /// Change nothing; a valid request fails with [`Condition::DryRunAccepted`].
    pub dry_run: bool,
}

/// `ModifyDiskAttribute`, limited to some attributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct ModifyDiskAttribute {
    #[serde(rename = "DiskId")]
    pub disk: DiskId,
    #[serde(flatten)]
    pub attribute: DiskAttribute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum DiskAttribute {
    /// Bursting beyond the baseline; `cloud_auto` only.
    #[serde(rename = "BurstingEnabled", serialize_with = "either")]
    Bursting(bool),
    /// Whether the disk is deleted with the instance that it is attached to.
    #[serde(serialize_with = "either")]
    DeleteWithInstance(bool),
}

/// `DescribeTasks` of spec changes (`TaskAction` is `ModifyDiskSpec`), the newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum DescribeTasks {
    /// The API accepts at most 100.
    #[serde(rename = "TaskIds", serialize_with = "comma_separated")]
    Ids(Vec<TaskId>),
    /// The newest 100 tasks of this disk.
    #[serde(rename = "ResourceIds.1")]
    Disk(DiskId),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreateSnapshot {
    #[serde(rename = "DiskId")]
    pub disk: DiskId,
    /// 2 to 128 characters, starting with a letter but not with `auto`.
    #[serde(rename = "SnapshotName")]
    pub name: String,
    /// Days until the cloud deletes the snapshot; none is unlimited.
    pub retention_days: Option<u32>,
    #[serde(rename = "ResourceGroupId")]
    pub resource_group: Option<String>,
    /// The API accepts at most 20.
    #[serde(rename = "Tag", serialize_with = "tags")]
    pub tags: Tags,
    #[serde(rename = "ClientToken")]
    pub token: ClientToken,
}

/// `DescribeSnapshots`: all filters that are set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeSnapshots {
    /// At most 100. `Some(vec![])` matches nothing.
    #[serde(rename = "SnapshotIds", serialize_with = "json_text")]
    pub ids: Option<Vec<SnapshotId>>,
    #[serde(rename = "DiskId")]
    pub disk: Option<DiskId>,
    #[serde(rename = "Tag", serialize_with = "tags")]
    pub tags: Tags,
    /// Rows per page, 10 to 100; none is 100.
    #[serde(rename = "MaxResults")]
    pub page_size: Option<u32>,
    #[serde(rename = "NextToken")]
    pub next: Option<String>,
}

/// `CreateSnapshotGroup`: crash-consistent snapshots of several disks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct CreateSnapshotGroup {
    /// 1 to 16 disks of one zone, at most 32 TiB in total.
    #[serde(rename = "DiskId")]
    pub disks: Vec<DiskId>,
    /// 2 to 128 characters, starting with a letter.
    pub name: String,
    #[serde(rename = "ResourceGroupId")]
    pub resource_group: Option<String>,
    /// At most 20. The snapshots do not inherit them.
    #[serde(rename = "Tag", serialize_with = "tags")]
    pub tags: Tags,
    #[serde(rename = "ClientToken")]
    pub token: ClientToken,
}

/// `DescribeSnapshotGroups`: all filters that are set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeSnapshotGroups {
    /// At most 10. `Some(vec![])` matches everything, as `None`.
    #[serde(rename = "SnapshotGroupId")]
    pub ids: Option<Vec<SnapshotGroupId>>,
    #[serde(rename = "Tag", serialize_with = "tags")]
    pub tags: Tags,
    #[serde(rename = "NextToken")]
    pub next: Option<String>,
}

/// A snapshot that `DeleteSnapshotGroup` did not delete, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndeletedSnapshot {
    /// The id; empty if the response lacks it.
    pub snapshot: String,
    /// The cloud's code, such as `SnapshotCreatedImage`.
    pub code: String,
    pub message: String,
}

impl UndeletedSnapshot {
    pub fn condition(&self) -> Condition {
        code::condition("DeleteSnapshotGroup", 403, &self.code)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct TagResources {
    /// The API accepts at most 50.
    #[serde(flatten)]
    pub targets: TagTarget,
    /// The API accepts at most 20.
    #[serde(rename = "Tag", serialize_with = "tags")]
    pub tags: Tags,
}

/// `UntagResources`. Keys that do not exist are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct UntagResources {
    /// The API accepts at most 50.
    #[serde(flatten)]
    pub targets: TagTarget,
    /// The API accepts at most 20.
    #[serde(rename = "TagKey")]
    pub keys: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "ResourceType", content = "ResourceId")]
pub enum TagTarget {
    #[serde(rename = "disk")]
    Disks(Vec<DiskId>),
    #[serde(rename = "snapshot")]
    Snapshots(Vec<SnapshotId>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeInstances {
    #[serde(rename = "InstanceIds", serialize_with = "json_text")]
    pub ids: Option<Vec<InstanceId>>,
    #[serde(rename = "NextToken")]
    pub next: Option<String>,
}

/// `DescribeAvailableResource` for data disks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DescribeStock {
    #[serde(rename = "ZoneId")]
    pub zone: Option<ZoneId>,
    #[serde(rename = "DataDiskCategory")]
    pub category: Option<Category>,
    /// The stock of regional categories (`Scope=region`).
    #[serde(rename = "Scope", serialize_with = "region")]
    pub regional: bool,
    /// Only categories that this instance type supports.
    pub instance_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// Malformed rows. Their resources exist: a caller must not treat them as missing.
    pub unreadable: Vec<Unreadable>,
    /// `NextToken`; none after the last page.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page without malformed rows.
    pub fn new(rows: Vec<T>, next: Option<String>) -> Self {
        Self {
            rows,
            unreadable: Vec::new(),
            next,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("malformed row of {}: {reason}", id.as_deref().unwrap_or("a resource without an id"))]
pub struct Unreadable {
    /// The resource id, if the row has one.
    pub id: Option<String>,
    pub reason: String,
}

/// In the order of the keys: a repeated request with the same client token must be identical.
fn tags<S: Serializer>(tags: &Tags, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(tags.iter().map(|(key, value)| json!({"Key": key, "Value": value})))
}

/// A JSON array in one string. An empty one matches nothing.
fn json_text<S: Serializer>(ids: &Option<Vec<impl Serialize>>, to: S) -> Result<S::Ok, S::Error> {
    ids.as_ref().map(|ids| json!(ids).to_string()).serialize(to)
}

fn comma_separated<S: Serializer>(ids: &[TaskId], to: S) -> Result<S::Ok, S::Error> {
    let ids: Vec<_> = ids.iter().map(TaskId::as_str).collect();
    ids.join(",").serialize(to)
}

fn enabled<S: Serializer>(is_set: &bool, to: S) -> Result<S::Ok, S::Error> {
    is_set.then_some("Enabled").serialize(to)
}

fn region<S: Serializer>(is_set: &bool, to: S) -> Result<S::Ok, S::Error> {
    is_set.then_some("region").serialize(to)
}

/// A value that is also sent if it is false.
fn either<S: Serializer>(value: &bool, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}
