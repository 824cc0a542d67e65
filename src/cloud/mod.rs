//! The ECS API: its actions ([`EcsApi`]) and the HTTP client.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::base::Deadline;
use crate::model::{Disk, DiskHealth, Instance, InstanceType, Snapshot, SnapshotGroup, Task};
use crate::model::{DiskId, SnapshotGroupId, SnapshotId, TaskId, ZoneStock};

pub mod action;
pub mod api_health;
pub mod client;
mod code;
pub mod credential;
pub mod endpoint;
pub mod error;
pub mod metadata;
pub mod rate_limit;
mod request_secrets;
mod response;
pub mod retry;
mod server_clock;
pub mod sign;
mod signing_key;
pub mod transport;
pub mod view;
pub mod wire;

pub use action::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk,
    DiskAttribute, ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, ResizeMode, TagResources,
    TagTarget, UndeletedSnapshot, Unreadable, UntagResources,
};
pub use api_health::ApiHealth;
pub use client::Client;
pub use error::{Condition, Error, Kind};
pub use server_clock::ServerClock;

pub type Result<T> = std::result::Result<T, Error>;

/// The ECS API, one method per action. Implemented by the HTTP client and by the fake cloud in memory.
///
/// Every call ends at its deadline. Reads are eventually consistent: a change may be missing
/// from descriptions for seconds.
#[async_trait]
pub trait EcsApi: Debug + Send + Sync {
    /// Waits until a call of the action (a description by resource ids) would be sent without queueing. A poller
    /// that assembles a batch awaits this first and binds the ids afterwards, so that a batch
    /// delayed by the rate limit carries every id requested meanwhile.
    ///
    /// Nothing is reserved: another call may still go first. An implementation without a rate limit returns immediately.
    ///
    /// Returns the time between two calls at the learned rate, zero while no rate is known; none if the call cannot be
    /// sent before the deadline.
    async fn ready(&self, deadline: Deadline, action: &'static str) -> Option<Duration> {
        let _ = (deadline, action);
        Some(Duration::ZERO)
    }

    /// A number that changes with the access key that signs the calls. What was read with one key proves nothing for
    /// another one, which may belong to another account.
    fn key_generation(&self) -> u64 {
        0
    }

    /// The cloud's time, or up to about a second earlier. Unknown before the first response.
    fn server_time(&self) -> Option<Timestamp> {
        None
    }

    /// Creates a data disk; it becomes `Available` later. Idempotent by its client token.
    async fn create_disk(&self, deadline: Deadline, request: &CreateDisk) -> Result<DiskId>;

    /// Deletes a detached disk. A disk that does not exist is [`Kind::NotFound`] or success.
    async fn delete_disk(&self, deadline: Deadline, disk: &DiskId) -> Result<()>;

    /// Starts attaching a disk; it becomes `In_use` later.
    async fn attach_disk(&self, deadline: Deadline, request: &AttachDisk) -> Result<()>;

    /// Starts detaching a disk; it becomes `Available` later.
    async fn detach_disk(&self, deadline: Deadline, request: &DetachDisk) -> Result<()>;

    /// One page of disks. Ids that do not exist are missing from the response.
    async fn describe_disks(&self, deadline: Deadline, query: &DescribeDisks)
    -> Result<Page<Disk>>;

    /// Grows a disk. Idempotent by its client token.
    async fn resize_disk(&self, deadline: Deadline, request: &ResizeDisk) -> Result<()>;

    /// Changes category, performance level or provisioned IOPS. A change of the category returns a
    /// task; other changes are synchronous.
    async fn modify_disk_spec(
        &self,
        deadline: Deadline,
        request: &ModifyDiskSpec,
    ) -> Result<Option<TaskId>>;

    /// Changes attributes of a disk synchronously.
    async fn modify_disk_attribute(
        &self,
        deadline: Deadline,
        request: &ModifyDiskAttribute,
    ) -> Result<()>;

    /// Tasks of spec changes, the newest first. Ids that do not exist are missing.
    async fn describe_tasks(&self, deadline: Deadline, query: &DescribeTasks)
    -> Result<Page<Task>>;

    /// The health of these disks, at most 100. Ids that do not exist are missing.
    async fn describe_disk_health(
        &self,
        deadline: Deadline,
        disks: &[DiskId],
    ) -> Result<Page<DiskHealth>>;

    /// Starts a snapshot. Idempotent by its client token.
    async fn create_snapshot(
        &self,
        deadline: Deadline,
        request: &CreateSnapshot,
    ) -> Result<SnapshotId>;

    /// Deletes a snapshot. A snapshot that does not exist is [`Kind::NotFound`] or success.
    async fn delete_snapshot(&self, deadline: Deadline, snapshot: &SnapshotId) -> Result<()>;

    /// One page of snapshots.
    async fn describe_snapshots(
        &self,
        deadline: Deadline,
        query: &DescribeSnapshots,
    ) -> Result<Page<Snapshot>>;

    /// Starts a crash-consistent group of snapshots of several disks. Idempotent by its client token.
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

    /// Deletes a group with its snapshots. Returns the snapshots that remain, although the cloud reports success. A group
    /// that does not exist is [`Kind::NotFound`] or success.
    async fn delete_snapshot_group(
        &self,
        deadline: Deadline,
        group: &SnapshotGroupId,
    ) -> Result<Vec<UndeletedSnapshot>>;

    /// Sets tags on disks or snapshots; existing keys are overwritten.
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

    /// The disk categories available in each zone.
    async fn describe_available_resource(
        &self,
        deadline: Deadline,
        query: &DescribeStock,
    ) -> Result<Vec<ZoneStock>>;
}
