//! The fake cloud behind the client's own schedule of repeats: what the verbs stand on in earnest,
//! without the wire. Which action is repeated how is what `cloud::client` says.

use std::time::Duration;

use async_trait::async_trait;

use diskplugin::base::Deadline;
use diskplugin::cloud::rate_limit::{Class, RateLimiter};
use diskplugin::cloud::retry::{Repeat, run};
use diskplugin::cloud::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk, Ecs,
    KeptMember, ListTagResources, ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, Result,
    TagResources, UntagResources,
};
use diskplugin::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId,
    SnapshotId, Task, TaskId, ZoneStock,
};
use diskplugin::sim::{Cloud, SimEcs};

/// A cloud whose calls are paced and repeated as the client does it.
#[derive(Debug)]
pub(crate) struct Patient {
    ecs: SimEcs,
    limiter: RateLimiter,
}

impl Patient {
    pub(crate) fn new(cloud: &Cloud) -> Self {
        Self {
            ecs: cloud.ecs(),
            limiter: RateLimiter::new(cloud.clock()),
        }
    }
}

macro_rules! patient {
    (@class describe_disks $action:literal $request:ident) => {
        Class::of_ids($request.ids.as_ref())
    };
    (@class describe_snapshots $action:literal $request:ident) => {
        Class::of_ids($request.ids.as_ref())
    };
    (@class $method:ident $action:literal $request:ident) => {
        Class::of($action)
    };
    ($($repeat:ident $action:literal $method:ident($request:ty) -> $answer:ty;)*) => {
        #[async_trait]
        impl Ecs for Patient {
            async fn ready(&self, deadline: Deadline, action: &'static str) -> Duration {
                self.limiter.ready(action, Class::Poll, deadline).await
            }

            $(async fn $method(&self, deadline: Deadline, request: &$request) -> Result<$answer> {
                let class = patient!(@class $method $action request);
                let once = || self.ecs.$method(deadline, request);
                let attempt = || self.limiter.run($action, class, deadline, once);
                run($action, deadline, Repeat::$repeat, attempt).await
            })*
        }
    };
}

patient! {
    Freely "CreateDisk" create_disk(CreateDisk) -> DiskId;
    Freely "DeleteDisk" delete_disk(DiskId) -> ();
    Unsent "AttachDisk" attach_disk(AttachDisk) -> ();
    Unsent "DetachDisk" detach_disk(DetachDisk) -> ();
    Freely "DescribeDisks" describe_disks(DescribeDisks) -> Page<Disk>;
    Freely "ResizeDisk" resize_disk(ResizeDisk) -> ();
    Freely "ModifyDiskSpec" modify_disk_spec(ModifyDiskSpec) -> Option<TaskId>;
    Freely "ModifyDiskAttribute" modify_disk_attribute(ModifyDiskAttribute) -> ();
    Freely "DescribeTasks" describe_tasks(DescribeTasks) -> Page<Task>;
    Freely "DescribeDisksFullStatus" describe_disk_health([DiskId]) -> Page<DiskHealth>;
    Freely "CreateSnapshot" create_snapshot(CreateSnapshot) -> SnapshotId;
    Freely "DeleteSnapshot" delete_snapshot(SnapshotId) -> ();
    Freely "DescribeSnapshots" describe_snapshots(DescribeSnapshots) -> Page<Snapshot>;
    Freely "CreateSnapshotGroup" create_snapshot_group(CreateSnapshotGroup) -> SnapshotGroupId;
    Freely "DescribeSnapshotGroups" describe_snapshot_groups(DescribeSnapshotGroups) -> Page<SnapshotGroup>;
    Freely "DeleteSnapshotGroup" delete_snapshot_group(SnapshotGroupId) -> Vec<KeptMember>;
    Freely "TagResources" tag_resources(TagResources) -> ();
    Freely "UntagResources" untag_resources(UntagResources) -> ();
    Freely "ListTagResources" list_tag_resources(ListTagResources) -> Page<String>;
    Freely "DescribeInstances" describe_instances(DescribeInstances) -> Page<Instance>;
    Freely "DescribeInstanceTypes" describe_instance_types([String]) -> Vec<InstanceType>;
    Freely "DescribeAvailableResource" describe_available_resource(DescribeStock) -> Vec<ZoneStock>;
}
