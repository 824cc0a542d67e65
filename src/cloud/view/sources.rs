//! What can be polled, and by which action.

use std::future::Future;
use std::sync::Arc;

use super::batch::{Found, Source};
use super::evidence::{ConfirmedAbsent, Evidence};
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

/// A source that describes by one call of the action.
fn source<K: 'static, V: 'static, F>(
    ecs: Arc<dyn Ecs>,
    action: &'static str,
    key: fn(&V) -> K,
    describe: impl Fn(Arc<dyn Ecs>, Vec<K>, Deadline) -> F + Send + Sync + 'static,
) -> Source<K, V>
where
    F: Future<Output = Result<Page<V>>> + Send + 'static,
{
    let limited = Arc::clone(&ecs);
    Source {
        ready: Box::new(move |deadline| {
            let ecs = Arc::clone(&limited);
            Box::pin(async move { ecs.ready(deadline, action).await })
        }),
        describe: Box::new(move |keys, deadline| {
            let page = describe(Arc::clone(&ecs), keys, deadline);
            Box::pin(async move { Ok(Found::new(action, page.await?, key)) })
        }),
        ids: IDS_A_CALL,
    }
}

/// Evidence from one unfiltered page.
fn evidence<K, V, F>(
    ecs: Arc<dyn Ecs>,
    action: &'static str,
    key: fn(&V) -> K,
    page: impl Fn(Arc<dyn Ecs>, Deadline) -> F + Send + Sync + 'static,
) -> Evidence<K>
where
    K: 'static,
    V: 'static,
    F: Future<Output = Result<Page<V>>> + Send + 'static,
{
    Evidence {
        action,
        page: Box::new(move |deadline| {
            let page = page(Arc::clone(&ecs), deadline);
            Box::pin(async move { Ok(page.await?.rows.iter().map(key).collect()) })
        }),
        names: None,
    }
}

/// A tag that no resource has: removing it has no effect, but the cloud names a resource that does not exist.
const NO_TAG: &str = "diskplugin.csi.example/none";

/// Whether the cloud names the disk or snapshot as missing.
async fn untag(
    ecs: Arc<dyn Ecs>,
    target: TagTarget,
    deadline: Deadline,
) -> Option<ConfirmedAbsent> {
    let request = UntagResources {
        targets: target,
        keys: vec![NO_TAG.to_owned()],
    };
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
    /// Polls disks.
    #[must_use]
    pub fn disks(ecs: Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let named = Arc::clone(&ecs);
        let evidence = Evidence {
            names: Some(Box::new(move |disk, deadline| {
                Box::pin(dry_run(Arc::clone(&named), disk, deadline))
            })),
            ..evidence(
                Arc::clone(&ecs),
                "DescribeDisks",
                |row: &Disk| row.id.clone(),
                |ecs, deadline| async move {
                    ecs.describe_disks(deadline, &DescribeDisks::default())
                        .await
                },
            )
        };
        let source = source(
            ecs,
            "DescribeDisks",
            |row: &Disk| row.id.clone(),
            |ecs, ids, deadline| async move {
                let query = DescribeDisks {
                    ids: Some(ids),
                    ..DescribeDisks::default()
                };
                ecs.describe_disks(deadline, &query).await
            },
        );
        Self::new(tasks, settings, source).with_evidence(evidence)
    }
}

impl Poller<SnapshotId, Snapshot> {
    /// Polls snapshots.
    #[must_use]
    pub fn snapshots(ecs: Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let named = Arc::clone(&ecs);
        let evidence = Evidence {
            names: Some(Box::new(move |snapshot, deadline| {
                let target = TagTarget::Snapshots(vec![snapshot]);
                Box::pin(untag(Arc::clone(&named), target, deadline))
            })),
            ..evidence(
                Arc::clone(&ecs),
                "DescribeSnapshots",
                |row: &Snapshot| row.id.clone(),
                |ecs, deadline| async move {
                    ecs.describe_snapshots(deadline, &DescribeSnapshots::default())
                        .await
                },
            )
        };
        let source = source(
            ecs,
            "DescribeSnapshots",
            |row: &Snapshot| row.id.clone(),
            |ecs, ids, deadline| async move {
                let query = DescribeSnapshots {
                    ids: Some(ids),
                    ..DescribeSnapshots::default()
                };
                ecs.describe_snapshots(deadline, &query).await
            },
        );
        Self::new(tasks, settings, source).with_evidence(evidence)
    }
}

impl Poller<TaskId, Task> {
    /// Polls tasks.
    #[must_use]
    pub fn tasks(ecs: Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let source = source(
            ecs,
            "DescribeTasks",
            |row: &Task| row.id.clone(),
            |ecs, ids, deadline| async move {
                let query = DescribeTasks::These(ids);
                ecs.describe_tasks(deadline, &query).await
            },
        );
        Self::new(tasks, settings, source)
    }
}

impl Poller<DiskId, DiskHealth> {
    /// Polls the health of disks.
    #[must_use]
    pub fn health(ecs: Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let source = source(
            ecs,
            "DescribeDisksFullStatus",
            |row: &DiskHealth| row.disk.clone(),
            |ecs, ids, deadline| async move { ecs.describe_disk_health(deadline, &ids).await },
        );
        Self::new(tasks, settings, source)
    }
}

impl Poller<InstanceId, Instance> {
    /// Polls instances.
    #[must_use]
    pub fn instances(ecs: Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let source = source(
            ecs,
            "DescribeInstances",
            |row: &Instance| row.id.clone(),
            |ecs, ids, deadline| async move {
                let query = DescribeInstances {
                    ids: Some(ids),
                    ..DescribeInstances::default()
                };
                ecs.describe_instances(deadline, &query).await
            },
        );
        Self::new(tasks, settings, source)
    }
}

impl Poller<SnapshotGroupId, SnapshotGroup> {
    /// Polls snapshot groups.
    #[must_use]
    pub fn groups(ecs: Arc<dyn Ecs>, tasks: Tasks, settings: PollSettings) -> Self {
        let evidence = evidence(
            Arc::clone(&ecs),
            "DescribeSnapshotGroups",
            |row: &SnapshotGroup| row.id.clone(),
            |ecs, deadline| async move {
                ecs.describe_snapshot_groups(deadline, &DescribeSnapshotGroups::default())
                    .await
            },
        );
        let source = source(
            ecs,
            "DescribeSnapshotGroups",
            |row: &SnapshotGroup| row.id.clone(),
            |ecs, ids, deadline| async move {
                let query = DescribeSnapshotGroups {
                    ids: Some(ids),
                    ..DescribeSnapshotGroups::default()
                };
                ecs.describe_snapshot_groups(deadline, &query).await
            },
        );
        Self::new(
            tasks,
            settings,
            Source {
                ids: GROUPS_A_CALL,
                ..source
            },
        )
        .with_evidence(evidence)
    }
}
