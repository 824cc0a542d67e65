//! The fake cloud with the client's rate limits and retries, without HTTP. `cloud::client` defines the retries of each
//! action.

use std::time::Duration;

use async_trait::async_trait;

use diskplugin::base::Deadline;
use diskplugin::cloud::rate_limit::{Priority, RateLimiter};
use diskplugin::cloud::retry::run;
use diskplugin::cloud::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk, EcsApi,
    ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, Result, TagResources, UndeletedSnapshot,
    UntagResources,
};
use diskplugin::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId,
    SnapshotId, Task, TaskId, ZoneStock,
};
use diskplugin::sim::{Cloud, SimEcs};

/// A cloud whose calls are rate-limited and retried as in the client.
#[derive(Debug)]
pub(crate) struct RetryingCloud {
    ecs: SimEcs,
    limiter: RateLimiter,
}

impl RetryingCloud {
    pub(crate) fn new(cloud: &Cloud) -> Self {
        Self {
            ecs: cloud.ecs(),
            limiter: RateLimiter::new(cloud.clock()),
        }
    }
}

macro_rules! retrying {
    (@class describe_disks $action:literal $request:ident) => {
        Priority::for_ids($request.ids.as_ref())
    };
    (@class describe_snapshots $action:literal $request:ident) => {
        Priority::for_ids($request.ids.as_ref())
    };
    (@class $method:ident $action:literal $request:ident) => {
        Priority::for_action($action)
    };
    ($($action:literal $method:ident($request:ty) -> $answer:ty;)*) => {
        #[async_trait]
        impl EcsApi for RetryingCloud {
            async fn ready(&self, deadline: Deadline, action: &'static str) -> Option<Duration> {
                self.limiter
                    .ready(action, Priority::for_ready(action), deadline)
                    .await
            }

            $(async fn $method(&self, deadline: Deadline, request: &$request) -> Result<$answer> {
                let class = retrying!(@class $method $action request);
                let once = || self.ecs.$method(deadline, request);
                let attempt = || self.limiter.run($action, class, deadline, once);
                run($action, deadline, attempt).await
            })*
        }
    };
}

retrying! {
    "CreateDisk" create_disk(CreateDisk) -> DiskId;
    "DeleteDisk" delete_disk(DiskId) -> ();
    "AttachDisk" attach_disk(AttachDisk) -> ();
    "DetachDisk" detach_disk(DetachDisk) -> ();
    "DescribeDisks" describe_disks(DescribeDisks) -> Page<Disk>;
    "ResizeDisk" resize_disk(ResizeDisk) -> ();
    "ModifyDiskSpec" modify_disk_spec(ModifyDiskSpec) -> Option<TaskId>;
    "ModifyDiskAttribute" modify_disk_attribute(ModifyDiskAttribute) -> ();
    "DescribeTasks" describe_tasks(DescribeTasks) -> Page<Task>;
    "DescribeDisksFullStatus" describe_disk_health([DiskId]) -> Page<DiskHealth>;
    "CreateSnapshot" create_snapshot(CreateSnapshot) -> SnapshotId;
    "DeleteSnapshot" delete_snapshot(SnapshotId) -> ();
    "DescribeSnapshots" describe_snapshots(DescribeSnapshots) -> Page<Snapshot>;
    "CreateSnapshotGroup" create_snapshot_group(CreateSnapshotGroup) -> SnapshotGroupId;
    "DescribeSnapshotGroups" describe_snapshot_groups(DescribeSnapshotGroups) -> Page<SnapshotGroup>;
    "DeleteSnapshotGroup" delete_snapshot_group(SnapshotGroupId) -> Vec<UndeletedSnapshot>;
    "TagResources" tag_resources(TagResources) -> ();
    "UntagResources" untag_resources(UntagResources) -> ();
    "DescribeInstances" describe_instances(DescribeInstances) -> Page<Instance>;
    "DescribeInstanceTypes" describe_instance_types([String]) -> Vec<InstanceType>;
    "DescribeAvailableResource" describe_available_resource(DescribeStock) -> Vec<ZoneStock>;
}
