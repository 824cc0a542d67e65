//! What each action is asked, in the project's own types.

use super::code::{self, Condition};
use crate::model::{
    Category, ClientToken, DiskId, Gib, InstanceId, PerformanceLevel, SnapshotGroupId, SnapshotId,
    Tags, TaskId, ZoneId,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateDisk {
    /// Where the disk lives for good; none for a regional category, which takes none.
    pub zone: Option<ZoneId>,
    pub category: Category,
    /// Level of a `cloud_essd`; none is the cloud's default, PL1.
    pub performance_level: Option<PerformanceLevel>,
    /// IOPS on top of the baseline; `cloud_auto` only.
    pub provisioned_iops: Option<u32>,
    /// Let it exceed its baseline; `cloud_auto` only.
    pub bursting: bool,
    pub multi_attach: bool,
    /// Resource group to bill it to; none is the account's default.
    pub resource_group: Option<String>,
    /// Capacity; at least that of the snapshot.
    pub size: Gib,
    /// Name in the console: 2 to 128 characters, a letter first.
    pub name: String,
    /// Snapshot to start from; none is a blank disk.
    pub snapshot: Option<SnapshotId>,
    pub encrypted: bool,
    /// Key to encrypt by; needs `encrypted`. None is the account's service key.
    pub kms_key: Option<String>,
    /// Tags, at most 20.
    pub tags: Tags,
    pub token: ClientToken,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachDisk {
    pub disk: DiskId,
    pub instance: InstanceId,
    /// Take a regional disk from an instance of another zone that cannot let go of it.
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
    /// These ids, at most 100. `Some(vec![])` matches nothing.
    pub ids: Option<Vec<DiskId>>,
    pub tags: Tags,
    pub instance: Option<InstanceId>,
    /// Rows a page, 10 to 500; none is 100.
    pub page_size: Option<u32>,
    /// Where the page before ended.
    pub next: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResizeDisk {
    pub disk: DiskId,
    /// The new capacity, larger than now.
    pub size: Gib,
    pub mode: ResizeMode,
    pub token: ClientToken,
}

/// How a disk grows (`Type` of `ResizeDisk`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResizeMode {
    /// While its instance runs; the guest sees it without a reboot.
    Online,
    /// While it is free.
    Offline,
}

/// `ModifyDiskSpec`: what is none stays as it is. At least one must be some.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyDiskSpec {
    pub disk: DiskId,
    /// Another category; that takes a task, and minutes to hours.
    pub category: Option<Category>,
    /// The level of a `cloud_essd`; that is done at once.
    pub performance_level: Option<PerformanceLevel>,
    /// IOPS on top of the baseline; `cloud_auto` only.
    pub provisioned_iops: Option<u32>,
    /// Change nothing: what could be done is refused with [`Condition::DryRunAccepted`].
    pub dry_run: bool,
}

/// `ModifyDiskAttribute`, as far as it is of use here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModifyDiskAttribute {
    pub disk: DiskId,
    /// Whether it may exceed its baseline; `cloud_auto` only.
    pub bursting: bool,
}

/// `DescribeTasks` of spec changes (`TaskAction` is `ModifyDiskSpec`), the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DescribeTasks {
    /// These tasks, at most 100.
    These(Vec<TaskId>),
    /// The newest 100 of this disk.
    Of(DiskId),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateSnapshot {
    pub disk: DiskId,
    /// Name in the console: 2 to 128 characters, a letter first, never starting with `auto`.
    pub name: String,
    /// Days until the cloud deletes it; none is for ever.
    pub retention_days: Option<u32>,
    pub resource_group: Option<String>,
    /// Tags, at most 20.
    pub tags: Tags,
    pub token: ClientToken,
}

/// `DescribeSnapshots`: all filters that are set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DescribeSnapshots {
    /// These ids, at most 100. `Some(vec![])` matches nothing.
    pub ids: Option<Vec<SnapshotId>>,
    pub disk: Option<DiskId>,
    pub tags: Tags,
    /// Rows a page, 10 to 100; none is 100.
    pub page_size: Option<u32>,
    pub next: Option<String>,
}

/// `CreateSnapshotGroup`: snapshots of several disks at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateSnapshotGroup {
    /// The disks: 1 to 16 of one zone, at most 32 TiB together.
    pub disks: Vec<DiskId>,
    /// Name in the console: 2 to 128 characters, a letter first.
    pub name: String,
    pub resource_group: Option<String>,
    /// Tags of the group, at most 20. Its snapshots do not inherit them.
    pub tags: Tags,
    pub token: ClientToken,
}

/// `DescribeSnapshotGroups`: all filters that are set must match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DescribeSnapshotGroups {
    /// These ids, at most 10. `Some(vec![])` matches everything, as if it were none.
    pub ids: Option<Vec<SnapshotGroupId>>,
    pub tags: Tags,
    pub next: Option<String>,
}

/// A snapshot that `DeleteSnapshotGroup` left, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMember {
    /// The snapshot's id, as the cloud names it; empty when it does not say.
    pub snapshot: String,
    /// The cloud's code, such as `SnapshotCreatedImage`.
    pub code: String,
    pub message: String,
}

impl KeptMember {
    /// What keeps it.
    pub fn condition(&self) -> Condition {
        code::condition("DeleteSnapshotGroup", 403, &self.code)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagResources {
    /// At most 50.
    pub targets: TagTarget,
    /// Tags to set, at most 20.
    pub tags: Tags,
}

/// `UntagResources`. A key that is not there is fine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntagResources {
    /// At most 50.
    pub targets: TagTarget,
    /// Keys to remove, at most 20.
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
    /// What the region as a whole sells (`Scope=region`): disks that are bound to no zone.
    pub regional: bool,
    /// Only what instances of this type take.
    pub instance_type: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// Rows that came and make no sense. What they are about is there, though nothing is known of it:
    /// who asks for one of them must not take it for gone.
    pub unreadable: Vec<Unreadable>,
    /// Where the next page starts; none after the last.
    pub next: Option<String>,
}

impl<T> Page<T> {
    /// A page on which every row made sense.
    pub fn new(rows: Vec<T>, next: Option<String>) -> Self {
        Self {
            rows,
            unreadable: Vec::new(),
            next,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the row of {} makes no sense: {reason}", id.as_deref().unwrap_or("something without an id"))]
pub struct Unreadable {
    /// What it is about, where the row says so.
    pub id: Option<String>,
    pub reason: String,
}
