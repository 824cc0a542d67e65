//! A cloud whose responses hide rows, or ignore what was asked.

use std::sync::Arc;

use async_trait::async_trait;

use diskplugin::base::Deadline;
use diskplugin::cloud::{
    AttachDisk, CreateDisk, CreateSnapshot, CreateSnapshotGroup, DescribeDisks, DescribeInstances,
    DescribeSnapshotGroups, DescribeSnapshots, DescribeStock, DescribeTasks, DetachDisk, Ecs,
    Error, KeptMember, ModifyDiskAttribute, ModifyDiskSpec, Page, ResizeDisk, Result, TagResources,
    UntagResources,
};
use diskplugin::disk::DiskServices;
use diskplugin::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceType, Snapshot, SnapshotGroup, SnapshotGroupId,
    SnapshotId, Tags, Task, TaskId, ZoneStock, tag,
};
use diskplugin::sim::SimEcs;

use crate::kit::{Setup, disk_services};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twist {
    /// The account may describe some disks (another resource group), but none of this cluster's.
    HidesOurs,
    /// Filters by tags are ignored.
    IgnoresTags,
    /// Filters by ids are ignored: other rows are returned.
    ReturnsOthers,
    /// A page of ids ends early, with a token for the rest.
    ShortPages,
    /// Ids that begin so are malformed.
    Malformed(&'static str),
}

#[derive(Debug)]
struct Twisted {
    ecs: SimEcs,
    twist: Twist,
}

fn is_ours(tags: &Tags) -> bool {
    tags.contains_key(tag::CLUSTER)
}

macro_rules! same {
    ($($method:ident($request:ty) -> $answer:ty;)*) => {
        #[async_trait]
        impl Ecs for Twisted {
            async fn describe_disks(&self, deadline: Deadline, query: &DescribeDisks) -> Result<Page<Disk>> {
                let mut query = query.clone();
                match self.twist {
                    Twist::IgnoresTags => query.tags = Tags::new(),
                    Twist::ReturnsOthers if query.ids.is_some() => {
                        let asked = query.ids.take().unwrap();
                        let mut page = self.ecs.describe_disks(deadline, &query).await?;
                        page.rows.retain(|row| !asked.contains(&row.id));
                        return Ok(page);
                    }
                    Twist::Malformed(start) => {
                        let ids = query.ids.iter().flatten();
                        if ids.clone().any(|id| id.as_str().ends_with(start)) {
                            return Err(Error::answered("DescribeDisks", 400, "InvalidParameter.DiskIds"));
                        }
                    }
                    _ => {}
                }
                let mut page = self.ecs.describe_disks(deadline, &query).await?;
                if self.twist == Twist::HidesOurs {
                    page.rows.retain(|row| !is_ours(&row.tags));
                }
                if self.twist == Twist::ShortPages && query.ids.is_some() && page.rows.len() > 1 {
                    page.rows.sort_by(|a, b| b.created.cmp(&a.created).reverse());
                    page.rows.truncate(1);
                    page.next = Some("more".to_owned());
                }
                Ok(page)
            }

            async fn describe_snapshots(&self, deadline: Deadline, query: &DescribeSnapshots) -> Result<Page<Snapshot>> {
                let mut query = query.clone();
                if self.twist == Twist::IgnoresTags {
                    query.tags = Tags::new();
                }
                self.ecs.describe_snapshots(deadline, &query).await
            }

            $(async fn $method(&self, deadline: Deadline, request: &$request) -> Result<$answer> {
                self.ecs.$method(deadline, request).await
            })*
        }
    };
}

same! {
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
    delete_snapshot_group(SnapshotGroupId) -> Vec<KeptMember>;
    tag_resources(TagResources) -> ();
    untag_resources(UntagResources) -> ();
    describe_instances(DescribeInstances) -> Page<Instance>;
    describe_instance_types([String]) -> Vec<InstanceType>;
    describe_available_resource(DescribeStock) -> Vec<ZoneStock>;
}

/// The same cloud, by a process that sees it through the twist.
pub(super) fn twisted(setup: &Setup, twist: Twist) -> Arc<DiskServices> {
    let ecs = setup.cloud.ecs();
    disk_services(Arc::new(Twisted { ecs, twist }), "test")
}
