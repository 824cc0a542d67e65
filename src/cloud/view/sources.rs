//! What can be polled, and by which action.

use std::sync::Arc;
use std::time::Duration;

use super::evidence::ConfirmedAbsent;
use super::source::{BoxFuture, Call, INTERVAL, Interval, Source};
use super::{IDS_A_CALL, Poller};
use crate::base::{Deadline, Tasks};
use crate::cloud::action::{
    DescribeDisks, DescribeInstances, DescribeSnapshotGroups, DescribeSnapshots, DescribeTasks,
    ModifyDiskSpec, TagTarget, UntagResources,
};
use crate::cloud::{Ecs, Kind};
use crate::model::{
    Category, Disk, DiskHealth, DiskId, Instance, InstanceId, Snapshot, SnapshotGroup,
    SnapshotGroupId, SnapshotId, Task, TaskId,
};

/// Ids that one `DescribeSnapshotGroups` takes.
const GROUPS_A_CALL: usize = 10;

/// Tasks take minutes to hours.
const TASK_INTERVAL: Interval = (Duration::from_secs(6), Duration::from_secs(10));

/// A tag that no resource has: removing it has no effect, but the cloud names a resource that does not exist.
const NO_TAG: &str = "diskplugin.csi.example/none";

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

/// A call without effect that names a missing resource.
type Names<K> = fn(Arc<dyn Ecs>, K, Deadline) -> BoxFuture<Option<ConfirmedAbsent>>;

/// Pollers of rows by their ids: the action, its most ids and its interval, the call for these ids, without ids for one page of whatever
/// there is, and what names a missing one.
macro_rules! pollers {
    ($($name:ident: $row:ident by $id:ident: $key:ident, $action:literal of $most:expr, $interval:expr,
        |$ecs:ident, $ids:ident, $deadline:ident| $page:expr, $names:expr;)*) => {
        $(impl Poller<$key, $row> {
            #[must_use]
            pub fn $name(ecs: &Arc<dyn Ecs>, tasks: Tasks) -> Self {
                let (limited, described, named) =
                    (Arc::clone(ecs), Arc::clone(ecs), Arc::clone(ecs));
                let names: Option<Names<$key>> = $names;
                let source = Source {
                    action: $action,
                    ids: $most,
                    interval: $interval,
                    id: |row: &$row| row.$id.clone(),
                    ready: Box::new(move |deadline| {
                        let ecs = Arc::clone(&limited);
                        Box::pin(async move { ecs.ready(deadline, $action).await })
                    }),
                    page: Box::new(move |$ids: Option<Vec<$key>>, $deadline| {
                        let $ecs = Arc::clone(&described);
                        Box::pin(async move { $page.await })
                    }),
                    names: names.map(|names| -> Call<$key, Option<ConfirmedAbsent>> {
                        Box::new(move |id, deadline| names(Arc::clone(&named), id, deadline))
                    }),
                };
                Self::new(tasks, source)
            }
        })*
    };
}

pollers! {
    disks: Disk by id: DiskId, "DescribeDisks" of IDS_A_CALL, INTERVAL,
        |ecs, ids, deadline| ecs.describe_disks(deadline, &DescribeDisks { ids, ..Default::default() }),
        Some(|ecs, disk, deadline| Box::pin(dry_run(ecs, disk, deadline)));
    snapshots: Snapshot by id: SnapshotId, "DescribeSnapshots" of IDS_A_CALL, INTERVAL,
        |ecs, ids, deadline| ecs.describe_snapshots(deadline, &DescribeSnapshots { ids, ..Default::default() }),
        Some(|ecs, snapshot, deadline| Box::pin(untag(ecs, TagTarget::Snapshots(vec![snapshot]), deadline)));
    groups: SnapshotGroup by id: SnapshotGroupId, "DescribeSnapshotGroups" of GROUPS_A_CALL, INTERVAL,
        |ecs, ids, deadline|
            ecs.describe_snapshot_groups(deadline, &DescribeSnapshotGroups { ids, ..Default::default() }),
        None;
    instances: Instance by id: InstanceId, "DescribeInstances" of IDS_A_CALL, INTERVAL,
        |ecs, ids, deadline| ecs.describe_instances(deadline, &DescribeInstances { ids, ..Default::default() }),
        None;
    // A task and the health of a disk are described by id only: their absence is never proven.
    tasks: Task by id: TaskId, "DescribeTasks" of IDS_A_CALL, TASK_INTERVAL,
        |ecs, ids, deadline| ecs.describe_tasks(deadline, &DescribeTasks::These(ids.unwrap_or_default())),
        None;
    health: DiskHealth by disk: DiskId, "DescribeDisksFullStatus" of IDS_A_CALL, INTERVAL,
        |ecs, ids, deadline| ecs.describe_disk_health(deadline, &ids.unwrap_or_default()),
        None;
}
