//! The cloud's disk API: what can be asked of it ([`Ecs`]) and the client that asks over HTTP.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;

use crate::base::Deadline;
use crate::model::{Disk, DiskHealth, Instance, InstanceType, Snapshot, SnapshotGroup, Task};
use crate::model::{DiskId, SnapshotGroupId, SnapshotId, TaskId, ZoneStock};

pub mod action;
mod answer;
pub mod client;
mod code;
mod confidential;
pub mod credential;
pub mod endpoint;
pub mod error;
pub mod metadata;
pub mod rate_limit;
pub mod retry;
pub mod sign;
pub mod standing;
pub mod transport;
pub mod view;
pub mod wire;

pub use action::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk,
    KeptMember, ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, ResizeMode, TagResources,
    TagTarget, Unreadable, UntagResources,
};
pub use client::Client;
pub use error::{Condition, Error, Kind};
pub use standing::Standing;

pub type Result<T> = std::result::Result<T, Error>;

/// The ECS API, one method an action. Implemented by the signing HTTP client, by decorators around
/// it, and by the fake cloud in memory.
///
/// No call goes on beyond its deadline. Reads are eventually consistent: what a call has just
/// changed may be missing from a description for seconds.
#[async_trait]
pub trait Ecs: Debug + Send + Sync {
    /// Waits until a call of the action by resource ids would be sent without queueing. A poller that assembles a batch
    /// awaits this first and binds the ids afterwards, so that a batch delayed by the rate limit carries every id
    /// requested meanwhile.
    ///
    /// Nothing is reserved: another call may still go first. An implementation without a rate limit returns immediately.
    ///
    /// Returns the share of the action's quota that one call uses, as the time after which the next call can be sent at
    /// the learned rate, zero while no rate is known; none if the call cannot be sent before the deadline.
    async fn ready(&self, deadline: Deadline, action: &'static str) -> Option<Duration> {
        let _ = (deadline, action);
        Some(Duration::ZERO)
    }

    /// Creates a data disk; it becomes `Available` later. Repeatable under the same token.
    async fn create_disk(&self, deadline: Deadline, request: &CreateDisk) -> Result<DiskId>;

    /// Deletes a disk that nobody holds. A disk that is not there is [`Kind::NotFound`] or success.
    async fn delete_disk(&self, deadline: Deadline, disk: &DiskId) -> Result<()>;

    /// Starts to attach a disk; it becomes `In_use` later.
    async fn attach_disk(&self, deadline: Deadline, request: &AttachDisk) -> Result<()>;

    /// Starts to detach a disk; it becomes `Available` later.
    async fn detach_disk(&self, deadline: Deadline, request: &DetachDisk) -> Result<()>;

    /// One page of disks. Ids that are not there are missing from the answer.
    async fn describe_disks(&self, deadline: Deadline, query: &DescribeDisks)
    -> Result<Page<Disk>>;

    /// Grows a disk. Repeatable under the same token.
    async fn resize_disk(&self, deadline: Deadline, request: &ResizeDisk) -> Result<()>;

    /// Changes category, level or provisioned IOPS. Another category takes the task that is answered;
    /// anything else is done at once.
    async fn modify_disk_spec(
        &self,
        deadline: Deadline,
        request: &ModifyDiskSpec,
    ) -> Result<Option<TaskId>>;

    /// Changes attributes, at once.
    async fn modify_disk_attribute(
        &self,
        deadline: Deadline,
        request: &ModifyDiskAttribute,
    ) -> Result<()>;

    /// Spec changes and how far they are, the newest first. What is not there is missing.
    async fn describe_tasks(&self, deadline: Deadline, query: &DescribeTasks)
    -> Result<Page<Task>>;

    /// The health of these disks, at most 100. Ids that are not there are missing.
    async fn describe_disk_health(
        &self,
        deadline: Deadline,
        disks: &[DiskId],
    ) -> Result<Page<DiskHealth>>;

    /// Starts a snapshot. Repeatable under the same token.
    async fn create_snapshot(
        &self,
        deadline: Deadline,
        request: &CreateSnapshot,
    ) -> Result<SnapshotId>;

    /// Deletes a snapshot. One that is not there is [`Kind::NotFound`] or success.
    async fn delete_snapshot(&self, deadline: Deadline, snapshot: &SnapshotId) -> Result<()>;

    /// One page of snapshots.
    async fn describe_snapshots(
        &self,
        deadline: Deadline,
        query: &DescribeSnapshots,
    ) -> Result<Page<Snapshot>>;

    /// Starts the snapshots of several disks at one instant. Repeatable under the same token.
    async fn create_snapshot_group(
        &self,
        deadline: Deadline,
        request: &CreateSnapshotGroup,
    ) -> Result<SnapshotGroupId>;

    /// One page of snapshot groups.
    async fn describe_snapshot_groups(
        &self,
        deadline: Deadline,
        query: &DescribeSnapshotGroups,
    ) -> Result<Page<SnapshotGroup>>;

    /// Deletes a group with its snapshots. Those that had to stay come back, though the cloud calls it
    /// a success; none is all gone. A group that is not there is [`Kind::NotFound`] or success.
    async fn delete_snapshot_group(
        &self,
        deadline: Deadline,
        group: &SnapshotGroupId,
    ) -> Result<Vec<KeptMember>>;

    /// Sets tags on disks or snapshots; keys that are there are overwritten.
    async fn tag_resources(&self, deadline: Deadline, request: &TagResources) -> Result<()>;

    /// Removes tags from disks or snapshots.
    async fn untag_resources(&self, deadline: Deadline, request: &UntagResources) -> Result<()>;

    /// One page of instances. An account without permission gets an empty page, not an error.
    async fn describe_instances(
        &self,
        deadline: Deadline,
        query: &DescribeInstances,
    ) -> Result<Page<Instance>>;

    /// The named instance types, at most ten.
    async fn describe_instance_types(
        &self,
        deadline: Deadline,
        names: &[String],
    ) -> Result<Vec<InstanceType>>;

    /// What disks can be bought where.
    async fn describe_available_resource(
        &self,
        deadline: Deadline,
        query: &DescribeStock,
    ) -> Result<Vec<ZoneStock>>;
}
