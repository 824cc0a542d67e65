//! The pollers, one per describe action.

use std::sync::Arc;
use std::time::Duration;

use super::Poller;
use super::source::{INTERVAL, Interval, Source};
use crate::Client;
use crate::action::{DescribeDisks, DescribeInstances, DescribeSnapshotGroups, DescribeSnapshots, DescribeTasks};
use crate::base::Tasks;
use crate::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceId, Snapshot, SnapshotGroup, SnapshotGroupId, SnapshotId, Task, TaskId,
};

/// IDs that one describe call accepts (ECS API, `DiskIds` and `SnapshotIds`).
pub const MAX_IDS_PER_CALL: usize = 100;

/// IDs that one `DescribeSnapshotGroups` call accepts.
const MAX_GROUPS_PER_CALL: usize = 10;

/// Tasks take minutes to hours.
const TASK_INTERVAL: Interval = (Duration::from_secs(6), Duration::from_secs(10));

/// Defines a poller for each kind of resource: the action that describes it, the maximum number of IDs per call, the
/// interval, and the call. `is_canary` returns whether every access key of this cluster must be able to see a row.
macro_rules! pollers {
    ($($name:ident: $row:ident by $id:ident: $key:ident, $action:literal of $max_ids:expr, $interval:expr,
        |$ecs:ident, $ids:ident, $deadline:ident| $page:expr;)*) => {
        $(impl Poller<$key, $row> {
            #[must_use]
            pub fn $name(
                ecs: &Arc<Client>,
                tasks: Tasks,
                is_canary: impl Fn(&$row) -> bool + Send + Sync + 'static,
            ) -> Self {
                let (limited, described, signed) =
                    (Arc::clone(ecs), Arc::clone(ecs), Arc::clone(ecs));
                let source = Source {
                    action: $action,
                    max_ids: $max_ids,
                    interval: $interval,
                    id: |row: &$row| row.$id.clone(),
                    ready: Box::new(move |deadline| {
                        let ecs = Arc::clone(&limited);
                        Box::pin(async move { ecs.ready(deadline, $action).await })
                    }),
                    page: Box::new(move |$ids: Vec<$key>, $deadline| {
                        let $ecs = Arc::clone(&described);
                        Box::pin(async move { $page.await })
                    }),
                    is_canary: Box::new(is_canary),
                    key: Box::new(move || signed.key_generation()),
                };
                Self::new(tasks, source)
            }
        })*
    };
}

pollers! {
    disks: Disk by id: DiskId, "DescribeDisks" of MAX_IDS_PER_CALL, INTERVAL,
        |ecs, ids, deadline|
            ecs.describe_disks(deadline, &DescribeDisks { ids: Some(ids), ..Default::default() });
    snapshots: Snapshot by id: SnapshotId, "DescribeSnapshots" of MAX_IDS_PER_CALL, INTERVAL,
        |ecs, ids, deadline|
            ecs.describe_snapshots(deadline, &DescribeSnapshots { ids: Some(ids), ..Default::default() });
    groups: SnapshotGroup by id: SnapshotGroupId, "DescribeSnapshotGroups" of MAX_GROUPS_PER_CALL, INTERVAL,
        |ecs, ids, deadline|
            ecs.describe_snapshot_groups(deadline, &DescribeSnapshotGroups { ids: Some(ids), ..Default::default() });
    instances: Instance by id: InstanceId, "DescribeInstances" of MAX_IDS_PER_CALL, INTERVAL,
        |ecs, ids, deadline|
            ecs.describe_instances(deadline, &DescribeInstances { ids: Some(ids), ..Default::default() });
    tasks: Task by id: TaskId, "DescribeTasks" of MAX_IDS_PER_CALL, TASK_INTERVAL,
        |ecs, ids, deadline| ecs.describe_tasks(deadline, &DescribeTasks::Ids(ids));
    health: DiskHealth by disk: DiskId, "DescribeDisksFullStatus" of MAX_IDS_PER_CALL, INTERVAL,
        |ecs, ids, deadline| ecs.describe_disk_health(deadline, &ids);
}
