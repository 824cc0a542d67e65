//! What can be polled, and by which action.

use std::future::Future;
use std::sync::Arc;

use super::evidence::ConfirmedAbsent;
use super::source::Source;
use super::{IDS_A_CALL, PollSettings, Poller};
use crate::base::{Deadline, Tasks};
use crate::cloud::action::{
    DescribeDisks, DescribeInstances, DescribeSnapshotGroups, DescribeSnapshots, DescribeTasks,
    ModifyDiskSpec, Page, TagTarget, UntagResources,
};
use crate::cloud::{Ecs, Kind, Result};
use crate::model::{
    Category, Disk, DiskHealth, DiskId, Instance, InstanceId, Snapshot, SnapshotGroup,
    SnapshotGroupId, SnapshotId, Task, TaskId,
};

/// Ids that one `DescribeSnapshotGroups` takes.
const GROUPS_A_CALL: usize = 10;

/// A tag that no resource has: removing it has no effect, but the cloud names a resource that does not exist.
const NO_TAG: &str = "diskplugin.csi.example/none";

/// A source of resources that no call names as missing.
fn source<K: 'static, V: 'static, F>(
    ecs: &Arc<dyn Ecs>,
    action: &'static str,
    id: fn(&V) -> K,
    page: impl Fn(Arc<dyn Ecs>, Option<Vec<K>>, Deadline) -> F + Send + Sync + 'static,
) -> Source<K, V>
where
    F: Future<Output = Result<Page<V>>> + Send + 'static,
{
    let (limited, described) = (Arc::clone(ecs), Arc::clone(ecs));
    Source {
        action,
        ids: IDS_A_CALL,
        id,
        ready: Box::new(move |deadline| {
            let ecs = Arc::clone(&limited);
            Box::pin(async move { ecs.ready(deadline, action).await })
        }),
        page: Box::new(move |ids, deadline| Box::pin(page(Arc::clone(&described), ids, deadline))),
        names: None,
    }
}

/// Whether the cloud names the disk or snapshot as missing.
async fn untag(
    ecs: Arc<dyn Ecs>,
    targets: TagTarget,
    deadline: Deadline,
) -> Option<ConfirmedAbsent> {
    let keys = vec![NO_TAG.to_owned()];
    let request = UntagResources { targets, keys };
    let outcome = ecs.untag_resources(deadline, &request).await;
    ConfirmedAbsent::by_error(&outcome.err()?)
}

/// Whether the cloud names the disk as missing. A dry run changes nothing.
async fn dry_run(ecs: Arc<dyn Ecs>, disk: DiskId, deadline: Deadline) -> Option<ConfirmedAbsent> {
    let request = ModifyDiskSpec {
        disk: disk.clone(),
        category: Some(Category::CloudEssd),
        performance_level: None,
        provisioned_iops: None,
        dry_run: true,
    };
    let error = ecs.modify_disk_spec(deadline, &request).await.err()?;
    if error.kind() == Kind::Denied {
        return untag(ecs, TagTarget::Disks(vec![disk]), deadline).await;
    }
    ConfirmedAbsent::by_error(&error)
}

impl Poller<DiskId, Disk> {
    #[must_use]
    pub fn disks(ecs: &Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let page = |ecs: Arc<dyn Ecs>, ids, deadline| async move {
            let rest = DescribeDisks::default();
            let query = DescribeDisks { ids, ..rest };
            ecs.describe_disks(deadline, &query).await
        };
        let mut source = source(ecs, "DescribeDisks", |row: &Disk| row.id.clone(), page);
        let ecs = Arc::clone(ecs);
        source.names = Some(Box::new(move |disk, deadline| {
            Box::pin(dry_run(Arc::clone(&ecs), disk, deadline))
        }));
        Self::new(tasks, settings, source)
    }
}

impl Poller<SnapshotId, Snapshot> {
    #[must_use]
    pub fn snapshots(ecs: &Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let page = |ecs: Arc<dyn Ecs>, ids, deadline| async move {
            let rest = DescribeSnapshots::default();
            let query = DescribeSnapshots { ids, ..rest };
            ecs.describe_snapshots(deadline, &query).await
        };
        let id = |row: &Snapshot| row.id.clone();
        let mut source = source(ecs, "DescribeSnapshots", id, page);
        let ecs = Arc::clone(ecs);
        source.names = Some(Box::new(move |snapshot, deadline| {
            let targets = TagTarget::Snapshots(vec![snapshot]);
            Box::pin(untag(Arc::clone(&ecs), targets, deadline))
        }));
        Self::new(tasks, settings, source)
    }
}

impl Poller<SnapshotGroupId, SnapshotGroup> {
    #[must_use]
    pub fn groups(ecs: &Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let page = |ecs: Arc<dyn Ecs>, ids, deadline| async move {
            let rest = DescribeSnapshotGroups::default();
            let query = DescribeSnapshotGroups { ids, ..rest };
            ecs.describe_snapshot_groups(deadline, &query).await
        };
        let id = |row: &SnapshotGroup| row.id.clone();
        let mut source = source(ecs, "DescribeSnapshotGroups", id, page);
        source.ids = GROUPS_A_CALL;
        Self::new(tasks, settings, source)
    }
}

impl Poller<InstanceId, Instance> {
    #[must_use]
    pub fn instances(ecs: &Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let page = |ecs: Arc<dyn Ecs>, ids, deadline| async move {
            let rest = DescribeInstances::default();
            let query = DescribeInstances { ids, ..rest };
            ecs.describe_instances(deadline, &query).await
        };
        let id = |row: &Instance| row.id.clone();
        let source = source(ecs, "DescribeInstances", id, page);
        Self::new(tasks, settings, source)
    }
}

// A task and the health of a disk are described by id only: their absence is never proven.

impl Poller<TaskId, Task> {
    #[must_use]
    pub fn tasks(ecs: &Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let page = |ecs: Arc<dyn Ecs>, ids: Option<Vec<TaskId>>, deadline| async move {
            let query = DescribeTasks::These(ids.unwrap_or_default());
            ecs.describe_tasks(deadline, &query).await
        };
        let source = source(ecs, "DescribeTasks", |row: &Task| row.id.clone(), page);
        Self::new(tasks, settings, source)
    }
}

impl Poller<DiskId, DiskHealth> {
    #[must_use]
    pub fn health(ecs: &Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let page = |ecs: Arc<dyn Ecs>, ids: Option<Vec<DiskId>>, deadline| async move {
            let disks = ids.unwrap_or_default();
            ecs.describe_disk_health(deadline, &disks).await
        };
        let id = |row: &DiskHealth| row.disk.clone();
        let source = source(ecs, "DescribeDisksFullStatus", id, page);
        Self::new(tasks, settings, source)
    }
}
