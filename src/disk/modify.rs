//! Modifies a disk in use: category, performance level, IOPS, bursting, tags (CSI `ControllerModifyVolume`).
//!
//! A change of the category is a task of minutes to hours, which no call waits for. If a repeated call, also after a
//! restart, is rejected because the disk is busy, it finds the task by the disk. While the task of a disk is known,
//! repeated calls only observe it. All waits for tasks share one poller.

use std::fmt::Display;
use std::time::Duration;

use ecs::poll::{Observation, Operation, PollMode, Poller};
use ecs::{
    self, Condition, DescribeTasks, DiskAttribute, Kind, ModifyDiskAttribute, ModifyDiskSpec, TagResources, TagTarget,
};
use tokio::time::Instant;

use super::Result;
use super::dependencies::Dependencies;
use super::error::{self, Error, cloud, wait};
use super::journal::TtlCache;
use super::read::read_disk;
use super::refusals::Refusals;
use crate::base::Deadline;
use crate::model::{Category, Change, Disk, DiskId, Failure, PerformanceLevel, Tags, Task, TaskId, TaskStatus};

/// How long the task of a disk is remembered after a call: longer than the sidecars wait between two attempts.
const MEMORY: Duration = Duration::from_secs(15 * 60);

#[derive(Debug)]
pub struct Modifier {
    shared: Dependencies,
    tasks: Poller<TaskId, Task>,
    /// The task that changes a disk, and since when calls have waited for it.
    changing: TtlCache<DiskId, (TaskId, Instant)>,
    refusals: Refusals<Order>,
}

/// A disk and its change: all requests of a change share the pauses after refusals.
type Order = (DiskId, String);

impl Modifier {
    pub(super) fn new(shared: &Dependencies, tasks: Poller<TaskId, Task>) -> Self {
        Self {
            shared: shared.clone(),
            tasks,
            changing: TtlCache::default(),
            refusals: Refusals::default(),
        }
    }

    /// Modifies the disk. Awaits a task of an earlier call. Other operations on the disk can run meanwhile.
    ///
    /// # Errors
    /// [`Error::Rejected`] if the change is infeasible, not possible yet, or failed in the cloud; [`Error::Wait`] if
    /// the task exceeds the deadline.
    pub async fn modify(&self, deadline: Deadline, disk: &DiskId, change: &Change) -> Result<()> {
        if let Some((task, _)) = self.changing.get(disk) {
            self.wait_task(deadline, disk, &task).await?;
            self.shared.journal.record_change(disk);
        }
        let row = self.read_unchanged(deadline, disk).await?;
        check_change(&row, change)?;
        let order = (disk.clone(), format!("{change:?}"));
        let mut wanted = modify_spec(&row, change);
        if let Some(spec) = &wanted
            && !self.dry_run(deadline, &order, spec).await?
        {
            wanted = None;
        }
        // Before the request, so that tags do not wait for a long task; after the dry run, so that a rejected change
        // has no effect.
        self.put_tags(deadline, &order, &row, &change.tags).await?;
        if let Some(spec) = &wanted {
            self.shared.journal.record_change(disk);
            let attempt = || self.shared.ecs.modify_disk_spec(deadline, spec);
            // Otherwise, an earlier attempt or another process has already changed the disk.
            if let Some(Some(task)) = self.send_until_accepted(deadline, &order, attempt).await? {
                self.wait_task(deadline, disk, &task).await?;
            }
            self.wait_changed(deadline, disk, change).await?;
            // The change is effective at the end of the task.
            self.shared.journal.record_change(disk);
        }
        if let Some(bursting) = change.bursting
            && bursting != row.bursting
        {
            self.set_bursting(deadline, &order, bursting).await?;
        }
        self.refusals.record_success(&order);
        Ok(())
    }

    /// Reads the disk, and excludes reads older than a change by this process.
    async fn read_unchanged(&self, deadline: Deadline, disk: &DiskId) -> Result<Disk> {
        let row = read_disk(&self.shared.disks, deadline, disk).await?;
        if !self.shared.journal.is_recently_changed(disk) {
            return Ok(row);
        }
        let read = |observation: Observation<Disk>| {
            let row = observation.row()?;
            (!self.shared.journal.is_recently_changed(disk)).then(|| Disk::clone(&row))
        };
        let waited = self
            .shared
            .disks
            .wait_until(disk, deadline, PollMode::Change, read)
            .await;
        waited.map_err(wait(format!("read disk {disk} after a recent change")))
    }

    /// Whether the disk differs from the spec. Fails if the cloud would reject the change.
    async fn dry_run(&self, deadline: Deadline, order: &Order, spec: &ModifyDiskSpec) -> Result<bool> {
        let request = ModifyDiskSpec {
            dry_run: true,
            ..spec.clone()
        };
        let attempt = || async {
            match self.shared.ecs.modify_disk_spec(deadline, &request).await {
                Err(code) if code.condition() == Condition::DryRunAccepted => Ok(None),
                outcome => outcome,
            }
        };
        let accepted = self.send_until_accepted(deadline, order, attempt).await?;
        Ok(accepted.is_some())
    }

    /// Retries while the disk is busy, until the cloud accepts the request; `None` if the disk already matches.
    async fn send_until_accepted<T, F>(
        &self,
        deadline: Deadline,
        order: &Order,
        attempt: impl Fn() -> F,
    ) -> Result<Option<T>>
    where
        F: Future<Output = ecs::Result<T>>,
    {
        let (disk, refusals) = (&order.0, &self.refusals);
        let mut before = None;
        let admitted = refusals.admit(deadline, order).await;
        admitted.map_err(|refusal| rejected(disk, refusal))?;
        loop {
            let error = match attempt().await {
                Ok(accepted) => return Ok(Some(accepted)),
                Err(error) => error,
            };
            if error.condition() == Condition::DiskUnchanged {
                return Ok(None);
            }
            // The last error explains more than a timeout.
            if error.kind() == Kind::Deadline {
                return Err(rejected(disk, before.unwrap_or(error)));
            }
            refusals.record_refusal(order, &error);
            if error.kind() != Kind::Conflict || error.condition() == Condition::ChangedTooOften {
                return Err(rejected(disk, error));
            }
            // Otherwise, the disk is being created, attached, detached or snapshotted.
            if let Some(task) = self.running_task(deadline, disk).await? {
                self.wait_task(deadline, disk, &task).await?;
            }
            if refusals.wait_due(deadline, order).await.is_err() {
                return Err(rejected(disk, error));
            }
            before = Some(error);
        }
    }

    async fn running_task(&self, deadline: Deadline, disk: &DiskId) -> Result<Option<TaskId>> {
        let query = DescribeTasks::Disk(disk.clone());
        let page = self.shared.ecs.describe_tasks(deadline, &query).await;
        let page = page.map_err(cloud(format!("find the task that changes disk {disk}")))?;
        let mut tasks = page.rows.into_iter();
        // Only one task runs at a time.
        let running = tasks.find(|task| task.status == TaskStatus::Processing);
        Ok(running.map(|task| task.id))
    }

    async fn wait_task(&self, deadline: Deadline, disk: &DiskId, task: &TaskId) -> Result<()> {
        let ended = |observation: Observation<Task>| match observation.row()?.status {
            TaskStatus::Finished => Some(true),
            TaskStatus::Failed => Some(false),
            TaskStatus::Processing | TaskStatus::Unknown(_) => None,
        };
        let known = self.changing.get(disk).filter(|(known, _)| known == task);
        let since = known.map_or_else(Instant::now, |(_, since)| since);
        self.changing.insert(disk, MEMORY, (task.clone(), since));
        let waited = self
            .tasks
            .wait_until_since(task, deadline, PollMode::Change, since, ended)
            .await;
        if waited.is_ok() {
            self.changing.remove(disk);
        }
        let step = format!("complete task {task}, which changes disk {disk}");
        if waited.map_err(wait(step))? {
            return Ok(());
        }
        let text = format!("the cloud failed to change disk {disk} (task {task}), which is unchanged");
        Err(error::rejected(Failure::ModifyFailed, text, None))
    }

    async fn wait_changed(&self, deadline: Deadline, disk: &DiskId, change: &Change) -> Result<()> {
        let changed = |observation: Observation<Disk>| {
            let row = observation.row()?;
            modify_spec(&row, change).is_none().then_some(())
        };
        let kind = match &change.category {
            Some(category) => Operation::Modify.for_category(category),
            None => Operation::Modify.into(),
        };
        let waited = self.shared.disks.wait_until_done(disk, deadline, kind, changed).await;
        waited.map_err(wait(format!("observe the change of disk {disk}")))
    }

    async fn set_bursting(&self, deadline: Deadline, order: &Order, bursting: bool) -> Result<()> {
        let disk = &order.0;
        self.shared.journal.record_change(disk);
        let request = ModifyDiskAttribute {
            disk: disk.clone(),
            attribute: DiskAttribute::Bursting(bursting),
        };
        let attempt = || self.shared.ecs.modify_disk_attribute(deadline, &request);
        self.send_until_accepted(deadline, order, attempt).await?;
        self.shared.journal.record_change(disk);
        Ok(())
    }

    async fn put_tags(&self, deadline: Deadline, order: &Order, row: &Disk, wanted: &Tags) -> Result<()> {
        let missing = wanted.iter().filter(|(key, value)| row.tags.get(*key) != Some(value));
        let tags: Tags = missing.map(|(k, v)| (k.clone(), v.clone())).collect();
        if tags.is_empty() {
            return Ok(());
        }
        let request = TagResources {
            targets: TagTarget::Disks(vec![row.id.clone()]),
            tags,
        };
        let tagged = self.shared.ecs.tag_resources(deadline, &request);
        let tagged = self.refusals.send(deadline, order, tagged).await;
        self.shared.journal.record_change(&row.id);
        tagged.map_err(cloud(format!("tag disk {}", row.id)))
    }
}

fn rejected(disk: &DiskId, source: ecs::Error) -> Error {
    let disk = disk.clone();
    match source.condition() {
        Condition::CoolingPeriod | Condition::ChangedTooOften => {
            let text = format!(
                "disk {disk} was changed recently, and the cloud enforces a cooling period between changes of the category"
            );
            error::rejected(Failure::CoolingPeriod, text, source)
        }
        Condition::CategoryUnsupported
        | Condition::PerformanceUnsupported
        | Condition::PerformanceOutOfRange
        | Condition::SharedDisk
        | Condition::NothingToModify => {
            let text = format!("disk {disk} does not support this change");
            error::rejected(Failure::ModifyRejected, text, source)
        }
        _ if source.kind() == Kind::NotFound => Error::NoSuchDisk { disk },
        _ => cloud(format!("modify disk {disk}"))(source),
    }
}

/// The request for the change; `None` if the disk already matches.
fn modify_spec(row: &Disk, change: &Change) -> Option<ModifyDiskSpec> {
    let spec = ModifyDiskSpec {
        disk: row.id.clone(),
        category: change.category.clone().filter(|to| *to != row.category),
        performance_level: change.level.filter(|to| level(row) != Some(*to)),
        // Disks of other categories report 0.
        provisioned_iops: change.provisioned_iops.filter(|to| *to != row.provisioned_iops),
        dry_run: false,
    };
    let is_empty = spec.category.is_none() && spec.performance_level.is_none() && spec.provisioned_iops.is_none();
    (!is_empty).then_some(spec)
}

fn level(row: &Disk) -> Option<PerformanceLevel> {
    row.performance_level.as_deref()?.parse().ok()
}

pub fn check_change(row: &Disk, change: &Change) -> Result<()> {
    let reject = |wanted: &dyn Display, reason: String| {
        let text = format!("disk {} cannot become {wanted}: {reason}", row.id);
        Err(error::rejected(Failure::ModifyRejected, text, None))
    };
    let to = change.category.as_ref().unwrap_or(&row.category);
    let (from, size) = (&row.category, row.size);
    if to != from {
        if ![from, to].iter().all(|one| Category::CONVERTIBLE.contains(one)) {
            let names = Category::CONVERTIBLE.each_ref().map(Category::as_str).join(", ");
            let reason = format!("it is {from}, and only these change into one another: {names}");
            return reject(to, reason);
        }
        if let Some(sizes) = to.sizes_at(change.level).filter(|sizes| !sizes.contains(&size)) {
            let (least, most) = sizes.into_inner();
            return reject(to, format!("its size is {size}, allowed are {least} to {most}"));
        }
    }
    if let Some(wanted) = change.level {
        if !to.has_levels() {
            return reject(&wanted, format!("{to} has no performance levels"));
        }
        if !wanted.sizes().contains(&size) {
            let least = wanted.sizes().start().to_string();
            let reason = format!("its size is {size}, the minimum is {least}; expand it first");
            return reject(&wanted, reason);
        }
        if wanted == PerformanceLevel::Pl0 && level(row) != Some(wanted) {
            return reject(&wanted, "no disk can be downgraded to it".to_owned());
        }
    }
    let most = to.most_provisioned_iops(size);
    if let Some(wanted) = change.provisioned_iops.filter(|wanted| *wanted > most) {
        let reason = format!("the maximum for {to} of {size} is {most}");
        return reject(&format!("a disk of {wanted} provisioned IOPS"), reason);
    }
    if change.bursting == Some(true) && !to.may_burst(size) {
        let reason = format!("{to} of {size} does not support it: cloud_auto above 3 GiB does");
        return reject(&"a bursting disk", reason);
    }
    let is_changed = modify_spec(row, change).is_some() || change.bursting == Some(true);
    if row.multi_attach && is_changed {
        let reason = "the cloud does not change disks that several instances can hold";
        return reject(&"another", reason.to_owned());
    }
    Ok(())
}
