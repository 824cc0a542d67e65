//! What can be looked at, and by which action.

use std::sync::Arc;

use super::Pace;
use super::found::Found;
use super::watch::Watch;
use crate::base::Tasks;
use crate::cloud::Ecs;
use crate::cloud::action::{
    DescribeDisks, DescribeInstances, DescribeSnapshotGroups, DescribeSnapshots, DescribeTasks,
    Page,
};
use crate::model::{
    Disk, DiskHealth, DiskId, Instance, InstanceId, Snapshot, SnapshotGroup, SnapshotGroupId,
    SnapshotId, Task, TaskId,
};

impl Watch<DiskId, Disk> {
    /// Looks at disks.
    #[must_use]
    pub fn disks(ecs: Arc<dyn Ecs>, tasks: Tasks, pace: Pace) -> Self {
        Self::new(tasks, pace, move |ids, deadline| {
            let ecs = Arc::clone(&ecs);
            Box::pin(async move {
                let query = DescribeDisks {
                    ids: Some(ids),
                    ..DescribeDisks::default()
                };
                let page = ecs.describe_disks(deadline, &query).await?;
                Ok(Found::new("DescribeDisks", page, |row| row.id.clone()))
            })
        })
    }
}

impl Watch<SnapshotId, Snapshot> {
    /// Looks at snapshots.
    #[must_use]
    pub fn snapshots(ecs: Arc<dyn Ecs>, tasks: Tasks, pace: Pace) -> Self {
        Self::new(tasks, pace, move |ids, deadline| {
            let ecs = Arc::clone(&ecs);
            Box::pin(async move {
                let query = DescribeSnapshots {
                    ids: Some(ids),
                    ..DescribeSnapshots::default()
                };
                let page = ecs.describe_snapshots(deadline, &query).await?;
                Ok(Found::new("DescribeSnapshots", page, |row| row.id.clone()))
            })
        })
    }
}

impl Watch<TaskId, Task> {
    /// Looks at tasks.
    #[must_use]
    pub fn tasks(ecs: Arc<dyn Ecs>, tasks: Tasks, pace: Pace) -> Self {
        Self::new(tasks, pace, move |ids, deadline| {
            let ecs = Arc::clone(&ecs);
            Box::pin(async move {
                let query = DescribeTasks::These(ids);
                let page = ecs.describe_tasks(deadline, &query).await?;
                Ok(Found::new("DescribeTasks", page, |row| row.id.clone()))
            })
        })
    }
}

impl Watch<DiskId, DiskHealth> {
    /// Looks at the health of disks.
    #[must_use]
    pub fn health(ecs: Arc<dyn Ecs>, tasks: Tasks, pace: Pace) -> Self {
        Self::new(tasks, pace, move |ids, deadline| {
            let ecs = Arc::clone(&ecs);
            Box::pin(async move {
                let page = ecs.describe_disk_health(deadline, &ids).await?;
                let action = "DescribeDisksFullStatus";
                Ok(Found::new(action, page, |row| row.disk.clone()))
            })
        })
    }
}

impl Watch<InstanceId, Instance> {
    /// Looks at instances.
    #[must_use]
    pub fn instances(ecs: Arc<dyn Ecs>, tasks: Tasks, pace: Pace) -> Self {
        Self::new(tasks, pace, move |ids, deadline| {
            let ecs = Arc::clone(&ecs);
            Box::pin(async move {
                let query = DescribeInstances {
                    ids: Some(ids),
                    ..DescribeInstances::default()
                };
                let page = ecs.describe_instances(deadline, &query).await?;
                Ok(Found::new("DescribeInstances", page, |row| row.id.clone()))
            })
        })
    }
}

/// Ids that one `DescribeSnapshotGroups` takes.
const GROUPS_A_CALL: usize = 10;

impl Watch<SnapshotGroupId, SnapshotGroup> {
    /// Looks at snapshot groups.
    #[must_use]
    pub fn groups(ecs: Arc<dyn Ecs>, tasks: Tasks, pace: Pace) -> Self {
        Self::new(tasks, pace, move |ids, deadline| {
            let ecs = Arc::clone(&ecs);
            Box::pin(async move {
                let mut all = Page::new(Vec::new(), None);
                for ids in ids.chunks(GROUPS_A_CALL) {
                    let query = DescribeSnapshotGroups {
                        ids: Some(ids.to_vec()),
                        ..DescribeSnapshotGroups::default()
                    };
                    let page = ecs.describe_snapshot_groups(deadline, &query).await?;
                    all.rows.extend(page.rows);
                    all.unreadable.extend(page.unreadable);
                }
                Ok(Found::new("DescribeSnapshotGroups", all, |row| {
                    row.id.clone()
                }))
            })
        })
    }
}
