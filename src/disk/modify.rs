//! Changing what a disk is while it is used: category, level, IOPS, bursting, tags.
//!
//! Another category takes a task of minutes to hours, longer than any call waits. Nothing of it is
//! remembered here: a repeated call, also after a restart, is told by the cloud that the disk is
//! busy, finds the task by the disk, and waits for it together with all others that wait for tasks.

use super::Result;
use super::back_off::BackOff;
use super::error::{Error, cloud, wait};
use super::journal::Journal;
use super::read::read_disk;
use crate::base::Deadline;
use std::sync::Arc;

use crate::cloud::Ecs;
use crate::cloud::view::{Operation, Poller, Seen};
use crate::cloud::{
    self as api, DRY_RUN, DescribeTasks, Kind, ModifyDiskAttribute, ModifyDiskSpec, TagResources,
    TagTarget,
};
use crate::model::{
    Category, Change, Disk, DiskId, PerformanceLevel, Tags, Task, TaskId, TaskStatus,
};

/// By this the cloud says that it is so already.
const UNCHANGED: &str = "NoChangeInDiskCategoryAndPerformanceLevel";

/// By this it says that bursting has to wait until the category is changed.
const BURST_LATER: &str = "BurstingEnabledForModifyingDiskUnsupported";

/// By these it says that the category was changed not long ago, or too often.
const COOLING: [&str; 2] = ["DiskInCoolingPeriod", "ModifyingDiskCategoryLimitExceed"];

/// By these it says that this disk will never be that.
const UNFIT: [&str; 14] = [
    "InvalidDiskCategory.NotSupported",
    "InvalidDiskCategory.ValueNotSupported",
    "InvalidPerformanceLevel.Malformed",
    "InvalidPerformanceLevel.TooLow",
    "InvalidPerformanceLevelParam.Mismatch",
    "OperationDenied.PerformanceLevelNotMatch",
    "InvalidProvisionedIops.LimitExceed",
    "ProvisionedIopsForDiskCategoryUnsupported",
    "InvalidOperation.MultiAttachDisk",
    "Downgrade.NotSupported",
    "BurstingEnabledForDiskCategoryUnsupported",
    "BurstingEnabledForMultiAttachDiskUnsupported",
    "InvalidBurstingEnabled.DiskSizeTooSmall",
    "NoAttributeToModify",
];

/// What a rehearsal showed.
enum Rehearsal {
    /// The order would be taken.
    Possible,
    /// There is nothing to order.
    Done,
}

/// What was waited out so far.
#[derive(Default)]
struct Turn {
    /// The last refusal, if any.
    refusal: Option<api::Error>,
    patience: BackOff,
}

/// Changes disks in place.
#[derive(Debug)]
pub struct Modifier {
    ecs: Arc<dyn Ecs>,
    disks: Arc<Poller<DiskId, Disk>>,
    tasks: Poller<TaskId, Task>,
    journal: Arc<Journal>,
}

impl Modifier {
    pub(super) fn new(
        ecs: Arc<dyn Ecs>,
        disks: Arc<Poller<DiskId, Disk>>,
        tasks: Poller<TaskId, Task>,
        journal: Arc<Journal>,
    ) -> Self {
        Self {
            ecs,
            disks,
            tasks,
            journal,
        }
    }

    /// Makes the disk what is wanted. What it is already costs no write; what an earlier call began
    /// is waited for.
    ///
    /// # Errors
    /// [`Error::CannotBecome`] and [`Error::Unchangeable`] when it never will, [`Error::Cooling`] when
    /// not yet, [`Error::TaskFailed`] when the cloud gave up; a task that outlives the deadline is a
    /// [`Error::Wait`].
    pub async fn modify(&self, deadline: Deadline, disk: &DiskId, change: &Change) -> Result<()> {
        let row = self.settled_disk(deadline, disk).await?;
        fits(&row, change)?;
        let mut ordered = order(&row, change);
        if let Some(order) = &ordered
            && let Rehearsal::Done = self.rehearse(deadline, order).await?
        {
            ordered = None;
        }
        // Before the order, so that a task that takes hours does not keep them waiting; after its
        // rehearsal, so that nothing is half changed when it is refused.
        self.put_tags(deadline, &row, &change.tags).await?;
        if let Some(order) = &ordered {
            self.order_change(deadline, order).await?;
            self.wait_changed(deadline, order).await?;
            // What a task changes, it changes at its end.
            self.journal.changes.note(disk);
        }
        match change.bursting {
            Some(bursting) if bursting != row.bursting => {
                self.switch_bursting(deadline, disk, bursting).await
            }
            _ => Ok(()),
        }
    }

    /// The disk as it is, also right after this process has changed it.
    async fn settled_disk(&self, deadline: Deadline, disk: &DiskId) -> Result<Disk> {
        let row = read_disk(&self.disks, deadline, disk).await?;
        if !self.journal.changes.lately(disk) {
            return Ok(row);
        }
        let settled = |seen: Seen<Disk>| match seen {
            Seen::Row(row) => (!self.journal.changes.lately(disk)).then(|| Disk::clone(&row)),
            Seen::Missing { .. } | Seen::Failed(_) => None,
        };
        let waited = self.disks.until(disk, deadline, settled).await;
        waited.map_err(wait(format!(
            "look at disk {disk}, which was changed just now"
        )))
    }

    async fn rehearse(&self, deadline: Deadline, order: &ModifyDiskSpec) -> Result<Rehearsal> {
        let rehearsal = ModifyDiskSpec {
            dry_run: true,
            ..order.clone()
        };
        let mut turn = Turn::default();
        loop {
            let outcome = self.ecs.modify_disk_spec(deadline, &rehearsal).await;
            let Err(refusal) = outcome else {
                return Ok(Rehearsal::Possible);
            };
            if refusal.has_code(DRY_RUN) {
                return Ok(Rehearsal::Possible);
            }
            if refusal.has_code(UNCHANGED) {
                return Ok(Rehearsal::Done);
            }
            turn = self.next_turn(deadline, &order.disk, turn, refusal).await?;
        }
    }

    async fn order_change(&self, deadline: Deadline, order: &ModifyDiskSpec) -> Result<()> {
        self.journal.changes.note(&order.disk);
        let mut turn = Turn::default();
        loop {
            match self.ecs.modify_disk_spec(deadline, order).await {
                Ok(None) => return Ok(()),
                Ok(Some(task)) => return self.wait_task(deadline, &order.disk, &task).await,
                // A repeat of it was answered, or another process was faster.
                Err(refusal) if refusal.has_code(UNCHANGED) => return Ok(()),
                Err(refusal) => {
                    turn = self.next_turn(deadline, &order.disk, turn, refusal).await?;
                }
            }
        }
    }

    /// Waits until the disk may take the order that was refused, or says why it will not.
    async fn next_turn(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        mut turn: Turn,
        refusal: api::Error,
    ) -> Result<Turn> {
        // Why it was not taken so far tells more than that the time is up.
        let refusal = match turn.refusal.take() {
            Some(before) if refusal.kind() == Kind::Deadline => {
                return Err(explained(disk, before));
            }
            _ => refusal,
        };
        if !passes(&refusal) {
            return Err(explained(disk, refusal));
        }
        if let Some(task) = self.running_task(deadline, disk).await? {
            self.wait_task(deadline, disk, &task).await?;
            turn.refusal = Some(refusal);
            return Ok(turn);
        }
        // It is being attached, detached, snapshotted or made: look again in a while.
        let looks = turn.patience.looks();
        match self.disks.until(disk, deadline, looks).await {
            Ok(()) => {
                turn.refusal = Some(refusal);
                Ok(turn)
            }
            Err(_) => Err(explained(disk, refusal)),
        }
    }

    async fn running_task(&self, deadline: Deadline, disk: &DiskId) -> Result<Option<TaskId>> {
        let query = DescribeTasks::Of(disk.clone());
        let page = self.ecs.describe_tasks(deadline, &query).await;
        let page = page.map_err(cloud(format!("look for the task that changes disk {disk}")))?;
        let mut tasks = page.rows.into_iter();
        // The newest first; only one runs at a time.
        let running = tasks.find(|task| task.status == TaskStatus::Processing);
        Ok(running.map(|task| task.id))
    }

    async fn wait_task(&self, deadline: Deadline, disk: &DiskId, task: &TaskId) -> Result<()> {
        let ended = |seen: Seen<Task>| match seen {
            Seen::Row(task) => match task.status {
                TaskStatus::Finished => Some(true),
                TaskStatus::Failed => Some(false),
                TaskStatus::Processing | TaskStatus::Unknown(_) => None,
            },
            Seen::Missing { .. } | Seen::Failed(_) => None,
        };
        let waited = self.tasks.until(task, deadline, ended).await;
        let step = || format!("see the end of task {task}, which changes disk {disk}");
        if waited.map_err(wait(step()))? {
            return Ok(());
        }
        Err(Error::TaskFailed {
            disk: disk.clone(),
            task: task.clone(),
        })
    }

    async fn wait_changed(&self, deadline: Deadline, order: &ModifyDiskSpec) -> Result<()> {
        let changed = |seen: Seen<Disk>| match seen {
            Seen::Row(row) => shows(&row, order).then_some(()),
            Seen::Missing { .. } | Seen::Failed(_) => None,
        };
        let waited = self
            .disks
            .until_done(&order.disk, deadline, Operation::Modify, changed)
            .await;
        waited.map_err(wait(format!("see the change of disk {}", order.disk)))
    }

    async fn switch_bursting(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        bursting: bool,
    ) -> Result<()> {
        self.journal.changes.note(disk);
        let request = ModifyDiskAttribute {
            disk: disk.clone(),
            bursting,
        };
        let mut turn = Turn::default();
        loop {
            match self.ecs.modify_disk_attribute(deadline, &request).await {
                Ok(()) => {
                    self.journal.changes.note(disk);
                    return Ok(());
                }
                Err(refusal) => turn = self.next_turn(deadline, disk, turn, refusal).await?,
            }
        }
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
        self.journal.changes.note(&row.id);
        tagged.map_err(cloud(format!("tag disk {}", row.id)))
    }
}

/// What has to be ordered; none when the row shows all of it.
fn order(row: &Disk, change: &Change) -> Option<ModifyDiskSpec> {
    let order = ModifyDiskSpec {
        disk: row.id.clone(),
        category: change.category.clone().filter(|to| *to != row.category),
        performance_level: change.level.filter(|to| level(row) != Some(*to)),
        // No IOPS is what a disk of another category has anyhow.
        provisioned_iops: change
            .provisioned_iops
            .filter(|to| *to != row.provisioned_iops),
        dry_run: false,
    };
    let nothing = order.category.is_none()
        && order.performance_level.is_none()
        && order.provisioned_iops.is_none();
    (!nothing).then_some(order)
}

/// Whether the row shows what was ordered.
fn shows(row: &Disk, order: &ModifyDiskSpec) -> bool {
    order.category.as_ref().is_none_or(|to| row.category == *to)
        && order
            .performance_level
            .is_none_or(|to| level(row) == Some(to))
        && order
            .provisioned_iops
            .is_none_or(|to| row.provisioned_iops == to)
}

fn level(row: &Disk) -> Option<PerformanceLevel> {
    row.performance_level.as_deref()?.parse().ok()
}

/// Whether a disk like this can be that, as far as the documents say.
fn fits(row: &Disk, change: &Change) -> Result<()> {
    let refuse = |wanted: String, reason: String| {
        Err(Error::CannotBecome {
            disk: row.id.clone(),
            wanted,
            reason,
        })
    };
    let to = change.category.as_ref().unwrap_or(&row.category);
    let (from, size) = (&row.category, row.size);
    if to != from {
        let names = Category::CONVERTIBLE.each_ref().map(Category::as_str);
        let names = names.join(", ");
        if !Category::CONVERTIBLE.contains(to) || !Category::CONVERTIBLE.contains(from) {
            let reason = format!("it is {from}, and only these change into one another: {names}");
            return refuse(to.to_string(), reason);
        }
        let sizes = to.sizes_at(change.level);
        if let Some(sizes) = sizes.filter(|sizes| !sizes.contains(&size)) {
            let reason = format!(
                "it has {size}, and that takes {} to {}",
                sizes.start(),
                sizes.end()
            );
            return refuse(to.to_string(), reason);
        }
    }
    if let Some(wanted) = change.level {
        if !to.has_levels() {
            return refuse(wanted.to_string(), format!("{to} has no levels"));
        }
        if !wanted.sizes().contains(&size) {
            let least = wanted.sizes().start().to_string();
            let reason = format!("it has {size}, and that takes {least}; grow it first");
            return refuse(wanted.to_string(), reason);
        }
        if wanted == PerformanceLevel::Pl0 && level(row) != Some(wanted) {
            return refuse(wanted.to_string(), "no disk goes down to that".to_owned());
        }
    }
    let most = to.most_provisioned_iops(size);
    if let Some(wanted) = change.provisioned_iops.filter(|wanted| *wanted > most) {
        let reason = format!("{to} of {size} takes at most {most}");
        return refuse(format!("one of {wanted} provisioned IOPS"), reason);
    }
    if change.bursting == Some(true) && !to.may_burst(size) {
        let reason = format!("{to} of {size} does not burst: cloud_auto above 3 GiB does");
        return refuse("bursting".to_owned(), reason);
    }
    let ordered = order(row, change).is_some() || change.bursting == Some(true);
    if row.multi_attach && ordered {
        let reason = "the cloud changes nothing about disks for several instances";
        return refuse("another".to_owned(), reason.to_owned());
    }
    Ok(())
}

/// Whether what stands in the way of an order passes by itself, and soon.
fn passes(refusal: &api::Error) -> bool {
    let known = |codes: &[&str]| refusal.code().is_some_and(|code| codes.contains(&code));
    !known(&COOLING)
        && !known(&UNFIT)
        && (refusal.kind() == Kind::Conflict || refusal.has_code(BURST_LATER))
}

fn explained(disk: &DiskId, refusal: api::Error) -> Error {
    let disk = disk.clone();
    match refusal.code() {
        Some(code) if COOLING.contains(&code) => Error::Cooling {
            disk,
            source: refusal,
        },
        Some(code) if UNFIT.contains(&code) => Error::Unchangeable {
            disk,
            source: refusal,
        },
        _ if refusal.kind() == Kind::NotFound => Error::NoSuchDisk { disk },
        _ => cloud(format!("modify disk {disk}"))(refusal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DiskKind, DiskStatus, Gib};

    fn disk(category: Category, size: u32) -> Disk {
        Disk {
            id: "d-1".parse().unwrap(),
            serial: None,
            name: String::new(),
            zone: None,
            performance_level: category.has_levels().then(|| "PL1".to_owned()),
            category,
            provisioned_iops: 0,
            bursting: false,
            multi_attach: false,
            resource_group: None,
            size: Gib(size),
            kind: DiskKind::Data,
            status: DiskStatus::Available,
            attachments: Vec::new(),
            source_snapshot: None,
            encrypted: false,
            kms_key: None,
            locks: Vec::new(),
            tags: Tags::new(),
            created: None,
            attached: None,
            detached: None,
        }
    }

    #[test]
    fn what_the_disk_is_already_is_not_ordered() {
        let row = disk(Category::CloudEssd, 20);
        let change = Change {
            category: Some(Category::CloudEssd),
            level: Some(PerformanceLevel::Pl1),
            provisioned_iops: Some(0),
            ..Change::default()
        };
        assert_eq!(order(&row, &change), None);
        let change = Change {
            level: None,
            category: Some(Category::CloudAuto),
            provisioned_iops: Some(100),
            ..change
        };
        let order = order(&row, &change).unwrap();
        assert_eq!(order.category, Some(Category::CloudAuto));
        assert_eq!(
            (order.performance_level, order.provisioned_iops),
            (None, Some(100))
        );
        assert!(!shows(&row, &order));
    }

    #[test]
    fn what_no_such_disk_can_be_is_refused_with_the_bound() {
        let level = |level| Change {
            level: Some(level),
            ..Change::default()
        };
        let iops = |iops| Change {
            provisioned_iops: Some(iops),
            ..Change::default()
        };
        let category = |category| Change {
            category: Some(category),
            ..Change::default()
        };
        let bursting = Change {
            bursting: Some(true),
            ..Change::default()
        };
        let shared = Disk {
            multi_attach: true,
            ..disk(Category::CloudEssd, 500)
        };
        for (row, change, told) in [
            (
                disk(Category::CloudEssd, 20),
                level(PerformanceLevel::Pl3),
                "1261 GiB",
            ),
            (
                disk(Category::CloudEssd, 20),
                level(PerformanceLevel::Pl0),
                "goes down",
            ),
            (
                disk(Category::CloudSsd, 20),
                level(PerformanceLevel::Pl1),
                "no levels",
            ),
            (disk(Category::CloudAuto, 20), iops(17_001), "at most 17000"),
            (disk(Category::CloudSsd, 20), iops(1), "at most 0"),
            (
                disk(Category::Cloud, 20),
                category(Category::CloudSsd),
                "cloud_essd, cloud_auto",
            ),
            (
                disk(Category::CloudAuto, 5),
                category(Category::CloudSsd),
                "20 GiB to 32768 GiB",
            ),
            (disk(Category::CloudAuto, 3), bursting, "above 3 GiB"),
            (shared, level(PerformanceLevel::Pl2), "several instances"),
        ] {
            let refused = fits(&row, &change).unwrap_err().to_string();
            assert!(
                refused.contains(told) && refused.contains("d-1"),
                "{refused}"
            );
        }
        assert!(fits(&disk(Category::CloudAuto, 20), &iops(17_000)).is_ok());
        assert!(
            fits(
                &disk(Category::CloudEssd, 461),
                &level(PerformanceLevel::Pl2)
            )
            .is_ok()
        );
    }
}
