//! The requests of the actions.

use super::code::{self, Condition};
use crate::model::{
    Category, ClientToken, DiskId, Gib, InstanceId, PerformanceLevel, SnapshotGroupId, SnapshotId, Tags, TaskId, ZoneId,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateDisk {
    /// None for a regional category, which has no zone.
    pub zone: Option<ZoneId>,
    pub category: Category,
    /// `cloud_essd` only; none is the cloud's default, PL1.
    pub performance_level: Option<PerformanceLevel>,
    /// IOPS on top of the baseline; `cloud_auto` only.
    pub provisioned_iops: Option<u32>,
    /// Bursting beyond the baseline; `cloud_auto` only.
    pub bursting: bool,
    pub multi_attach: bool,
    /// None is the account's default resource group.
    pub resource_group: Option<String>,
    /// At least the size of the snapshot.
    pub size: Gib,
    /// 2 to 128 characters, starting with a letter.
    pub name: String,
    /// The source; none is a blank disk.
    pub snapshot: Option<SnapshotId>,
    pub encrypted: bool,
    /// Requires `encrypted`. None is the account's service key.
    pub kms_key: Option<String>,
    /// The API accepts at most 20.
    pub tags: Tags,
    pub token: ClientToken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachDisk {
    pub disk: DiskId,
    pub instance: InstanceId,
    /// Attach a regional disk even though an instance of another zone cannot detach it.
    pub force: bool,
    /// Delete the disk with the instance: required for elastic ephemeral disks, wrong for all others.
    pub delete_with_instance: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachDisk {
    pub disk: DiskId,
    pub instance: InstanceId,
    pub delete_with_instance: bool,
}

/// `DescribeDisks`: all filters that are set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DescribeDisks {
    /// At most 100. `Some(vec![])` matches nothing.
    pub ids: Option<Vec<DiskId>>,
    pub tags: Tags,
    pub instance: Option<InstanceId>,
    /// Rows per page, 10 to 500; none is 100.
    pub page_size: Option<u32>,
    /// `NextToken` of the previous page.
    pub next: Option<String>,
    /// List nothing; a valid request fails with [`Condition::DryRunAccepted`].
    pub dry_run: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResizeDisk {
    pub disk: DiskId,
    /// Larger than the current size.
    pub size: Gib,
    pub mode: ResizeMode,
    pub token: ClientToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResizeMode {
    /// While the instance runs, without a reboot.
    Online,
    /// While the disk is detached.
    Offline,
}

/// `ModifyDiskSpec`: at least one of the options is set; the others do not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyDiskSpec {
    pub disk: DiskId,
    /// A change of the category is a task of minutes to hours.
    pub category: Option<Category>,
    /// `cloud_essd` only; the change is synchronous.
    pub performance_level: Option<PerformanceLevel>,
    /// IOPS on top of the baseline; `cloud_auto` only.
    pub provisioned_iops: Option<u32>,
    /// Change nothing; a valid request fails with [`Condition::DryRunAccepted`].
    pub dry_run: bool,
}

/// `ModifyDiskAttribute`, limited to some attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyDiskAttribute {
    pub disk: DiskId,
    pub attribute: DiskAttribute,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskAttribute {
    /// Bursting beyond the baseline; `cloud_auto` only.
    Bursting(bool),
    /// Whether the disk is deleted with the instance that it is attached to.
    DeleteWithInstance(bool),
}

/// `DescribeTasks` of spec changes (`TaskAction` is `ModifyDiskSpec`), the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DescribeTasks {
    /// The API accepts at most 100.
    Ids(Vec<TaskId>),
    /// The newest 100 tasks of this disk.
    Disk(DiskId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateSnapshot {
    pub disk: DiskId,
    /// 2 to 128 characters, starting with a letter but not with `auto`.
    pub name: String,
    /// Days until the cloud deletes the snapshot; none is unlimited.
    pub retention_days: Option<u32>,
    pub resource_group: Option<String>,
    /// The API accepts at most 20.
    pub tags: Tags,
    pub token: ClientToken,
}

/// `DescribeSnapshots`: all filters that are set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DescribeSnapshots {
    /// At most 100. `Some(vec![])` matches nothing.
    pub ids: Option<Vec<SnapshotId>>,
    pub disk: Option<DiskId>,
    pub tags: Tags,
    /// Rows per page, 10 to 100; none is 100.
    pub page_size: Option<u32>,
    pub next: Option<String>,
}

/// `CreateSnapshotGroup`: crash-consistent snapshots of several disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateSnapshotGroup {
    /// 1 to 16 disks of one zone, at most 32 TiB in total.
    pub disks: Vec<DiskId>,
    /// 2 to 128 characters, starting with a letter.
    pub name: String,
    pub resource_group: Option<String>,
    /// At most 20. The snapshots do not inherit them.
    pub tags: Tags,
    pub token: ClientToken,
}

/// `DescribeSnapshotGroups`: all filters that are set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DescribeSnapshotGroups {
    /// At most 10. `Some(vec![])` matches everything, as `None`.
    pub ids: Option<Vec<SnapshotGroupId>>,
    pub tags: Tags,
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagResources {
    /// The API accepts at most 50.
    pub targets: TagTarget,
    /// The API accepts at most 20.
    pub tags: Tags,
}

/// `UntagResources`. Keys that do not exist are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntagResources {
    /// The API accepts at most 50.
    pub targets: TagTarget,
    /// The API accepts at most 20.
    pub keys: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagTarget {
    Disks(Vec<DiskId>),
    Snapshots(Vec<SnapshotId>),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DescribeInstances {
    pub ids: Option<Vec<InstanceId>>,
    pub next: Option<String>,
}

/// `DescribeAvailableResource` for data disks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DescribeStock {
    pub zone: Option<ZoneId>,
    pub category: Option<Category>,
    /// The stock of regional categories (`Scope=region`).
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
