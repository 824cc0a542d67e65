//! The fake cloud behind the client's own schedule of repeats: what the verbs stand on in earnest,
//! without the wire. Which action is repeated how is what `cloud::client` says.

use async_trait::async_trait;

use diskplugin::base::Deadline;
use diskplugin::cloud::retry::{Repeat, run};
use diskplugin::cloud::{
    AttachDisk, CreateDisk, CreateSnapshot, DescribeDisks, DescribeInstances, DescribeSnapshots,
    DescribeStock, DetachDisk, Ecs, Page, ResizeDisk, Result, TagResources,
};
use diskplugin::model::{Disk, DiskId, Instance, InstanceType, Snapshot, SnapshotId, ZoneStock};
use diskplugin::sim::SimEcs;

/// A cloud whose calls are repeated as the client repeats them.
#[derive(Debug)]
pub(crate) struct Patient(pub(crate) SimEcs);

macro_rules! patient {
    ($($repeat:ident $action:literal $method:ident($request:ty) -> $answer:ty;)*) => {
        #[async_trait]
        impl Ecs for Patient {
            $(async fn $method(&self, deadline: Deadline, request: &$request) -> Result<$answer> {
                let attempt = || self.0.$method(deadline, request);
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
    Freely "CreateSnapshot" create_snapshot(CreateSnapshot) -> SnapshotId;
    Freely "DeleteSnapshot" delete_snapshot(SnapshotId) -> ();
    Freely "DescribeSnapshots" describe_snapshots(DescribeSnapshots) -> Page<Snapshot>;
    Freely "TagResources" tag_resources(TagResources) -> ();
    Freely "DescribeInstances" describe_instances(DescribeInstances) -> Page<Instance>;
    Freely "DescribeInstanceTypes" describe_instance_types([String]) -> Vec<InstanceType>;
    Freely "DescribeAvailableResource" describe_available_resource(DescribeStock) -> Vec<ZoneStock>;
}
