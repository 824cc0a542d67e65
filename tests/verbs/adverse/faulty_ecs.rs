//! A cloud whose responses omit rows or ignore filters of the request.

use std::sync::Arc;

use async_trait::async_trait;

use diskplugin::base::Deadline;
use diskplugin::cloud::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk, EcsApi,
    Error, ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, Result, TagResources,
    UndeletedSnapshot, UntagResources,
};
use diskplugin::disk::DiskServices;
use diskplugin::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId,
    SnapshotId, Tags, Task, TaskId, ZoneStock, tag,
};
use diskplugin::sim::SimEcs;

use crate::kit::{Setup, disk_services};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The account can describe some disks (another resource group), but none of this cluster.
    HidesOwnedDisks,
    /// Filters by tags are ignored.
    IgnoresTagFilter,
    /// Filters by IDs are ignored: other rows are returned.
    IgnoresIdFilter,
    /// A page of IDs ends early, with a token for the rest.
    TruncatesPages,
    /// IDs with this suffix are malformed.
    RejectsIds(&'static str),
}

#[derive(Debug)]
struct FaultyEcs {
    ecs: SimEcs,
    fault: Fault,
}

fn is_owned(tags: &Tags) -> bool {
    tags.contains_key(tag::CLUSTER)
}

macro_rules! faulty {
    ($($method:ident($request:ty) -> $response:ty;)*) => {
        #[async_trait]
        impl EcsApi for FaultyEcs {
            async fn describe_disks(&self, deadline: Deadline, query: &DescribeDisks) -> Result<Page<Disk>> {
                let mut query = query.clone();
                match self.fault {
                    Fault::IgnoresTagFilter => query.tags = Tags::new(),
                    Fault::IgnoresIdFilter if query.ids.is_some() => {
                        let requested = query.ids.take().unwrap();
                        let mut page = self.ecs.describe_disks(deadline, &query).await?;
                        page.rows.retain(|row| !requested.contains(&row.id));
                        return Ok(page);
                    }
                    Fault::RejectsIds(suffix) => {
                        let ids = query.ids.iter().flatten();
                        if ids.clone().any(|id| id.as_str().ends_with(suffix)) {
                            return Err(Error::from_response("DescribeDisks", 400, "InvalidParameter.DiskIds"));
                        }
                    }
                    _ => {}
                }
                let mut page = self.ecs.describe_disks(deadline, &query).await?;
                if self.fault == Fault::HidesOwnedDisks {
                    page.rows.retain(|row| !is_owned(&row.tags));
                }
                if self.fault == Fault::TruncatesPages && query.ids.is_some() && page.rows.len() > 1 {
                    page.rows.sort_by(|a, b| b.created.cmp(&a.created).reverse());
                    page.rows.truncate(1);
                    page.next = Some("more".to_owned());
                }
                Ok(page)
            }

            async fn describe_snapshots(&self, deadline: Deadline, query: &DescribeSnapshots) -> Result<Page<Snapshot>> {
                let mut query = query.clone();
                if self.fault == Fault::IgnoresTagFilter {
                    query.tags = Tags::new();
                }
                self.ecs.describe_snapshots(deadline, &query).await
            }

            $(async fn $method(&self, deadline: Deadline, request: &$request) -> Result<$response> {
                self.ecs.$method(deadline, request).await
            })*
        }
    };
}

faulty! {
    create_disk(CreateDisk) -> DiskId;
    delete_disk(DiskId) -> ();
    attach_disk(AttachDisk) -> ();
    detach_disk(DetachDisk) -> ();
    resize_disk(ResizeDisk) -> ();
    modify_disk_spec(ModifyDiskSpec) -> Option<TaskId>;
    modify_disk_attribute(ModifyDiskAttribute) -> ();
    describe_tasks(DescribeTasks) -> Page<Task>;
    describe_disk_health([DiskId]) -> Page<DiskHealth>;
    create_snapshot(CreateSnapshot) -> SnapshotId;
    delete_snapshot(SnapshotId) -> ();
    create_snapshot_group(CreateSnapshotGroup) -> SnapshotGroupId;
    describe_snapshot_groups(DescribeSnapshotGroups) -> Page<SnapshotGroup>;
    delete_snapshot_group(SnapshotGroupId) -> Vec<UndeletedSnapshot>;
    tag_resources(TagResources) -> ();
    untag_resources(UntagResources) -> ();
    describe_instances(DescribeInstances) -> Page<Instance>;
    describe_instance_types([String]) -> Vec<InstanceType>;
    describe_available_resource(DescribeStock) -> Vec<ZoneStock>;
}

/// The disk services of a process that gets faulty responses from the same cloud.
pub(super) fn faulty_services(setup: &Setup, fault: Fault) -> Arc<DiskServices> {
    let ecs = setup.cloud.ecs();
    disk_services(Arc::new(FaultyEcs { ecs, fault }), "test")
}
