//! The pollers, one per describe action.

use std::sync::Arc;
use std::time::Duration;

use super::evidence::ConfirmedAbsent;
use super::source::{BoxFuture, Call, INTERVAL, Interval, Source};
use super::{MAX_IDS_PER_CALL, Poller};
use crate::base::{Deadline, Tasks};
use crate::cloud::action::{
    DescribeDisks, DescribeInstances, DescribeSnapshotGroups, DescribeSnapshots, DescribeTasks,
    ModifyDiskSpec, TagTarget, UntagResources,
};
use crate::cloud::{EcsApi, Kind};
use crate::model::{
    Category, Disk, DiskHealth, DiskId, Instance, InstanceId, Snapshot, SnapshotGroup,
    SnapshotGroupId, SnapshotId, Task, TaskId,
};

/// Ids that one `DescribeSnapshotGroups` call accepts.
const MAX_GROUPS_PER_CALL: usize = 10;

/// Tasks take minutes to hours.
const TASK_INTERVAL: Interval = (Duration::from_secs(6), Duration::from_secs(10));

/// A tag that no resource has: removing it has no effect, but the cloud names a resource that does not exist.
const NO_TAG: &str = "diskplugin.csi.example/none";

/// Proof that the disk or snapshot does not exist, if the cloud names it as missing.
async fn check_by_untag(
    ecs: Arc<dyn EcsApi>,
    targets: TagTarget,
    deadline: Deadline,
) -> Option<ConfirmedAbsent> {
    let keys = vec![NO_TAG.to_owned()];
    let request = UntagResources { targets, keys };
    let outcome = ecs.untag_resources(deadline, &request).await;
    ConfirmedAbsent::from_error(&outcome.err()?)
}

/// As [`check_by_untag`], by a dry run, which changes nothing.
async fn check_by_dry_run(
    ecs: Arc<dyn EcsApi>,
    disk: DiskId,
    deadline: Deadline,
) -> Option<ConfirmedAbsent> {
    let request = ModifyDiskSpec {
        disk: disk.clone(),
        category: Some(Category::CloudEssd),
        performance_level: None,
        provisioned_iops: None,
        dry_run: true,
    };
    let error = ecs.modify_disk_spec(deadline, &request).await.err()?;
    if error.kind() == Kind::Denied {
        return check_by_untag(ecs, TagTarget::Disks(vec![disk]), deadline).await;
    }
    ConfirmedAbsent::from_error(&error)
}

/// A call without effect whose error names a missing resource.
type FindMissing<K> = fn(Arc<dyn EcsApi>, K, Deadline) -> BoxFuture<Option<ConfirmedAbsent>>;

/// Pollers of rows by their ids: the action, its maximum of ids and its interval; the call for these ids, or without ids
/// for one unfiltered page; and the call that names a missing resource.
macro_rules! pollers {
    ($($name:ident: $row:ident by $id:ident: $key:ident, $action:literal of $max_ids:expr, $interval:expr,
        |$ecs:ident, $ids:ident, $deadline:ident| $page:expr, $find_missing:expr;)*) => {
        $(impl Poller<$key, $row> {
            #[must_use]
            pub fn $name(ecs: &Arc<dyn EcsApi>, tasks: Tasks) -> Self {
                let (limited, described, checked) =
                    (Arc::clone(ecs), Arc::clone(ecs), Arc::clone(ecs));
                let find_missing: Option<FindMissing<$key>> = $find_missing;
                let source = Source {
                    action: $action,
                    max_ids: $max_ids,
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
                    find_missing: find_missing.map(|find_missing| -> Call<$key, Option<ConfirmedAbsent>> {
                        Box::new(move |id, deadline| find_missing(Arc::clone(&checked), id, deadline))
                    }),
                };
                Self::new(tasks, source)
            }
        })*
    };
}

pollers! {
    disks: Disk by id: DiskId, "DescribeDisks" of MAX_IDS_PER_CALL, INTERVAL,
        |ecs, ids, deadline| ecs.describe_disks(deadline, &DescribeDisks { ids, ..Default::default() }),
        Some(|ecs, disk, deadline| Box::pin(check_by_dry_run(ecs, disk, deadline)));
    snapshots: Snapshot by id: SnapshotId, "DescribeSnapshots" of MAX_IDS_PER_CALL, INTERVAL,
        |ecs, ids, deadline| ecs.describe_snapshots(deadline, &DescribeSnapshots { ids, ..Default::default() }),
        Some(|ecs, snapshot, deadline| Box::pin(check_by_untag(ecs, TagTarget::Snapshots(vec![snapshot]), deadline)));
    groups: SnapshotGroup by id: SnapshotGroupId, "DescribeSnapshotGroups" of MAX_GROUPS_PER_CALL, INTERVAL,
        |ecs, ids, deadline|
            ecs.describe_snapshot_groups(deadline, &DescribeSnapshotGroups { ids, ..Default::default() }),
        None;
    instances: Instance by id: InstanceId, "DescribeInstances" of MAX_IDS_PER_CALL, INTERVAL,
        |ecs, ids, deadline| ecs.describe_instances(deadline, &DescribeInstances { ids, ..Default::default() }),
        None;
    // A task and the health of a disk are described by id only: their absence is never proven.
    tasks: Task by id: TaskId, "DescribeTasks" of MAX_IDS_PER_CALL, TASK_INTERVAL,
        |ecs, ids, deadline| ecs.describe_tasks(deadline, &DescribeTasks::Ids(ids.unwrap_or_default())),
        None;
    health: DiskHealth by disk: DiskId, "DescribeDisksFullStatus" of MAX_IDS_PER_CALL, INTERVAL,
        |ecs, ids, deadline| ecs.describe_disk_health(deadline, &ids.unwrap_or_default()),
        None;
}
