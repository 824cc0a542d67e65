//! Changing a disk in use: category, performance level, IOPS, bursting, tags.
//!
//! A change of the category is a task of minutes to hours, longer than any call waits. No state of it is kept here: the
//! order of a repeated call, also after a restart, is refused because the disk is busy; the call finds the task by the
//! disk, and waits for it. All that wait for tasks share one poller.

use std::sync::Arc;

use super::Result;
use super::dependencies::Dependencies;
use super::error::{self, Error, cloud, wait};
use super::journal::Journal;
use super::pauses::Pauses;
use super::read::read_disk;
use crate::base::Deadline;
use crate::cloud::view::{Observation, Operation, Poller};
use crate::cloud::{
    self, Condition, DescribeTasks, EcsApi, Kind, ModifyDiskAttribute, ModifyDiskSpec,
    TagResources, TagTarget,
};
use crate::model::{Change, Disk, DiskId, Failure, Tags, Task, TaskId, TaskStatus};

mod plan;

use plan::{check, order};

#[derive(Debug)]
pub struct Modifier {
    ecs: Arc<dyn EcsApi>,
    disks: Arc<Poller<DiskId, Disk>>,
    tasks: Poller<TaskId, Task>,
    journal: Arc<Journal>,
}

impl Modifier {
    pub(super) fn new(shared: &Dependencies, tasks: Poller<TaskId, Task>) -> Self {
        let shared = shared.clone();
        Self {
            ecs: shared.ecs,
            disks: shared.disks,
            tasks,
            journal: shared.journal,
        }
    }

    /// Modifies the disk. Properties that match are not written; a task of an earlier call is awaited. Other operations on the
    /// disk can run meanwhile.
    ///
    /// # Errors
    /// [`Error::Refused`] if the change is infeasible, not possible yet, or failed in the cloud;
    /// [`Error::Wait`] if the task exceeds the deadline.
    pub async fn modify(&self, deadline: Deadline, disk: &DiskId, change: &Change) -> Result<()> {
        let row = self.settled_disk(deadline, disk).await?;
        check(&row, change)?;
        let mut ordered = order(&row, change);
        if let Some(order) = &ordered
            && !self.dry_run(deadline, order).await?
        {
            ordered = None;
        }
        // Before the request, so that tags do not wait for a task of hours; after its dry run, so that a rejected change
        // leaves nothing half-done.
        self.put_tags(deadline, &row, &change.tags).await?;
        if let Some(order) = &ordered {
            self.order_change(deadline, order).await?;
            self.wait_changed(deadline, disk, change).await?;
            // The change is effective at the end of the task.
            self.journal.change(disk);
        }
        match change.bursting {
            Some(bursting) if bursting != row.bursting => {
                self.switch_bursting(deadline, disk, bursting).await
            }
            _ => Ok(()),
        }
    }

    /// The disk, without reads from before a change by this process.
    async fn settled_disk(&self, deadline: Deadline, disk: &DiskId) -> Result<Disk> {
        let row = read_disk(&self.disks, deadline, disk).await?;
        if !self.journal.is_recently_changed(disk) {
            return Ok(row);
        }
        let settled = |seen: Observation<Disk>| {
            let row = seen.row()?;
            (!self.journal.is_recently_changed(disk)).then(|| Disk::clone(&row))
        };
        let waited = self.disks.wait_until(disk, deadline, settled).await;
        waited.map_err(wait(format!(
            "read disk {disk}, which was changed just now"
        )))
    }

    /// Whether the cloud would accept the order; false if the disk is like this already.
    async fn dry_run(&self, deadline: Deadline, order: &ModifyDiskSpec) -> Result<bool> {
        let request = ModifyDiskSpec {
            dry_run: true,
            ..order.clone()
        };
        let attempt = || async {
            match self.ecs.modify_disk_spec(deadline, &request).await {
                Err(code) if code.condition() == Condition::DryRunAccepted => Ok(None),
                outcome => outcome,
            }
        };
        let accepted = self.accepted(deadline, &order.disk, attempt).await?;
        Ok(accepted.is_some())
    }

    async fn order_change(&self, deadline: Deadline, order: &ModifyDiskSpec) -> Result<()> {
        let disk = &order.disk;
        self.journal.change(disk);
        let attempt = || self.ecs.modify_disk_spec(deadline, order);
        // Otherwise an earlier attempt or another process has done it.
        if let Some(Some(task)) = self.accepted(deadline, disk, attempt).await? {
            self.wait_task(deadline, disk, &task).await?;
        }
        Ok(())
    }

    /// Repeats an order while the disk is busy, until the cloud accepts it; none if the disk is like this already.
    async fn accepted<T, F>(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        attempt: impl Fn() -> F,
    ) -> Result<Option<T>>
    where
        F: Future<Output = cloud::Result<T>>,
    {
        let (mut pauses, mut before) = (Pauses::default(), None);
        loop {
            let refusal = match attempt().await {
                Ok(accepted) => return Ok(Some(accepted)),
                Err(refusal) => refusal,
            };
            if refusal.condition() == Condition::DiskUnchanged {
                return Ok(None);
            }
            // The last refusal explains more than that the deadline has passed.
            if refusal.kind() == Kind::Deadline {
                return Err(refused(disk, before.unwrap_or(refusal)));
            }
            if refusal.kind() != Kind::Conflict || refusal.condition() == Condition::ChangedTooOften
            {
                return Err(refused(disk, refusal));
            }
            if let Some(task) = self.running_task(deadline, disk).await? {
                self.wait_task(deadline, disk, &task).await?;
            } else if pauses.pause(deadline).await.is_err() {
                // It is being created, attached, detached or snapshotted.
                return Err(refused(disk, refusal));
            }
            before = Some(refusal);
        }
    }

    async fn running_task(&self, deadline: Deadline, disk: &DiskId) -> Result<Option<TaskId>> {
        let query = DescribeTasks::Disk(disk.clone());
        let page = self.ecs.describe_tasks(deadline, &query).await;
        let page = page.map_err(cloud(format!("find the task that changes disk {disk}")))?;
        let mut tasks = page.rows.into_iter();
        // The newest first; only one runs at a time.
        let running = tasks.find(|task| task.status == TaskStatus::Processing);
        Ok(running.map(|task| task.id))
    }

    async fn wait_task(&self, deadline: Deadline, disk: &DiskId, task: &TaskId) -> Result<()> {
        let ended = |seen: Observation<Task>| match seen.row()?.status {
            TaskStatus::Finished => Some(true),
            TaskStatus::Failed => Some(false),
            TaskStatus::Processing | TaskStatus::Unknown(_) => None,
        };
        let waited = self.tasks.wait_until(task, deadline, ended).await;
        let step = format!("complete task {task}, which changes disk {disk}");
        if waited.map_err(wait(step))? {
            return Ok(());
        }
        let text = format!(
            "the cloud gave up changing disk {disk} (task {task}), which is as it was before"
        );
        Err(error::refused(Failure::ModifyFailed, text, None))
    }

    async fn wait_changed(&self, deadline: Deadline, disk: &DiskId, change: &Change) -> Result<()> {
        let changed = |seen: Observation<Disk>| {
            let row = seen.row()?;
            order(&row, change).is_none().then_some(())
        };
        let kind = match &change.category {
            Some(category) => Operation::Modify.for_category(category),
            None => Operation::Modify.into(),
        };
        let waited = self
            .disks
            .wait_until_done(disk, deadline, kind, changed)
            .await;
        waited.map_err(wait(format!("observe the change of disk {disk}")))
    }

    async fn switch_bursting(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        bursting: bool,
    ) -> Result<()> {
        self.journal.change(disk);
        let request = ModifyDiskAttribute {
            disk: disk.clone(),
            bursting,
        };
        let attempt = || self.ecs.modify_disk_attribute(deadline, &request);
        self.accepted(deadline, disk, attempt).await?;
        self.journal.change(disk);
        Ok(())
    }

    async fn put_tags(&self, deadline: Deadline, row: &Disk, wanted: &Tags) -> Result<()> {
        let missing = wanted
            .iter()
            .filter(|(key, value)| row.tags.get(*key) != Some(value));
        let tags: Tags = missing.map(|(k, v)| (k.clone(), v.clone())).collect();
        if tags.is_empty() {
            return Ok(());
        }
        let request = TagResources {
            targets: TagTarget::Disks(vec![row.id.clone()]),
            tags,
        };
        let tagged = self.ecs.tag_resources(deadline, &request).await;
        self.journal.change(&row.id);
        tagged.map_err(cloud(format!("tag disk {}", row.id)))
    }
}

fn refused(disk: &DiskId, source: cloud::Error) -> Error {
    let disk = disk.clone();
    match source.condition() {
        Condition::CoolingPeriod | Condition::ChangedTooOften => {
            let text = format!(
                "disk {disk} was changed not long ago, and the cloud lets some time pass between two changes of the \
                 category"
            );
            error::refused(Failure::CoolingPeriod, text, source)
        }
        Condition::CategoryUnsupported
        | Condition::PerformanceUnsupported
        | Condition::PerformanceOutOfRange
        | Condition::SharedDisk
        | Condition::NothingToModify => {
            let text = format!("disk {disk} cannot be changed like this");
            error::refused(Failure::ModifyRejected, text, source)
        }
        _ if source.kind() == Kind::NotFound => Error::NoSuchDisk { disk },
        _ => cloud(format!("modify disk {disk}"))(source),
    }
}
