//! Snapshots: as the world knows them, and `CreateSnapshot` and `DeleteSnapshot`.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::action::Action;
use super::agenda::Due;
use super::instance::Power;
use super::name;
use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::size;
use super::spread::{after, before, until};
use super::tag;
use super::world::World;

/// Manual snapshots that a disk can have.
const MOST: usize = 256;
/// Snapshots in the making that a disk of the ESSD family can have.
const MOST_AT_ONCE: usize = 10;

/// How far a snapshot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    Progressing,
    Accomplished,
    Failed,
}

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SnapshotRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) disk: String,
    pub(crate) category: String,
    pub(crate) size: u32,
    pub(crate) encrypted: bool,
    pub(crate) stage: Stage,
    /// When the point in time was cut.
    pub(crate) cut: Option<Timestamp>,
    pub(crate) begun: Timestamp,
    pub(crate) ends: Timestamp,
    pub(crate) retention_days: Option<u32>,
    pub(crate) resource_group: Option<String>,
    pub(crate) group: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
}

impl SnapshotRow {
    pub(crate) fn status(&self) -> &'static str {
        match self.stage {
            Stage::Progressing => "progressing",
            Stage::Accomplished => "accomplished",
            Stage::Failed => "failed",
        }
    }

    /// Whether disks can be made from it: at once in the ESSD family, else when it is complete.
    pub(crate) fn available(&self) -> bool {
        match self.stage {
            Stage::Progressing => self.cut.is_some() && size::is_essd(&self.category),
            Stage::Accomplished => true,
            Stage::Failed => false,
        }
    }

    /// Per cent.
    pub(crate) fn progress(&self, now: Timestamp) -> u128 {
        match self.stage {
            Stage::Accomplished => 100,
            Stage::Progressing | Stage::Failed => {
                let whole = until(self.begun, self.ends).as_millis().max(1);
                (until(self.begun, now).as_millis() * 100 / whole).min(99)
            }
        }
    }
}

impl World {
    pub(crate) fn create_snapshot(&mut self, params: &Params, fails_later: bool) -> Reply {
        params.required("DiskId")?;
        self.once(Action::CreateSnapshot, params, |world| {
            world.create_snapshot_once(params, fails_later)
        })
    }

    fn create_snapshot_once(&mut self, params: &Params, fails_later: bool) -> Reply {
        let disk = params.required("DiskId")?;
        let snapshot_name = params.get("SnapshotName").unwrap_or_default();
        name::check(snapshot_name, "InvalidSnapshotName.Malformed")?;
        if snapshot_name.starts_with("auto") {
            return Err(Refusal::new(400, "InvalidSnapshotName.Malformed"));
        }
        let retention_days: Option<u32> = params.parsed("RetentionDays")?;
        if retention_days.is_some_and(|days| !(1..=65536).contains(&days)) {
            return Err(Refusal::new(400, "InvalidRetentionDays.Malformed"));
        }
        let tags = params.tags()?;
        tag::check_count(&tags)?;
        self.check_snapshot_source(disk)?;
        let Some(source) = self.disk(disk).cloned() else {
            return Err(Refusal::new(404, "InvalidDiskId.NotFound"));
        };
        let (cut, whole) = self.snapshot_delays();
        let id = format!("s-{}", self.rng.body());
        self.put_snapshot(
            cut,
            fails_later,
            SnapshotRow {
                id: id.clone(),
                name: snapshot_name.to_owned(),
                description: params.get("Description").unwrap_or_default().to_owned(),
                disk: disk.to_owned(),
                category: source.category,
                size: source.size,
                encrypted: source.encrypted,
                stage: Stage::Progressing,
                cut: None,
                begun: self.now,
                ends: after(self.now, whole),
                retention_days,
                resource_group: params.get("ResourceGroupId").map(str::to_owned),
                group: None,
                tags,
            },
        );
        Ok(Answer::Snapshot(id))
    }

    /// How long until the cut and until the end.
    pub(super) fn snapshot_delays(&mut self) -> (Duration, Duration) {
        let delays = self.config.delays.clone();
        let cut = delays.cut.draw(&mut self.rng);
        (cut, delays.snapshot.draw(&mut self.rng).max(cut))
    }

    /// Puts a snapshot that has just begun, and plans what becomes of it.
    pub(super) fn put_snapshot(&mut self, cut: Duration, fails_later: bool, row: SnapshotRow) {
        self.note_snapshot(&row.id, None, Some(&row));
        self.cut_from.add(&row.disk, &row.id);
        let snapshot = row.id.clone();
        if let Some(days) = row.retention_days {
            let snapshot = snapshot.clone();
            let life = Duration::from_hours(24 * u64::from(days));
            self.plan(life, Due::SnapshotExpired { snapshot });
        }
        self.snapshots.insert(row.id.clone(), row);
        let due = if fails_later {
            Due::SnapshotFailed { snapshot }
        } else {
            Due::Cut { snapshot }
        };
        self.plan(cut, due);
    }

    pub(super) fn check_snapshot_source(&mut self, disk: &str) -> Result<(), Refusal> {
        let missing = || Refusal::new(404, "InvalidDiskId.NotFound");
        let row = self.disk(disk).ok_or_else(missing)?;
        if size::is_ephemeral(&row.category) {
            return Err(self.alternative(&[
                (400, "DiskCategory.OperationNotSupported"),
                (403, "IncorrectDiskType.NotSupport"),
                (403, "DiskId.ValueNotSupported"),
            ]));
        }
        match row.status() {
            "Available" if self.config.rules.never_attached && row.attached.is_none() => {
                return Err(Refusal::new(403, "IncorrectDiskStatus.NeverAttached"));
            }
            "Available" => {}
            "In_use" => {
                let holder = row.attachments.first().map(|a| a.instance.as_str());
                let power = holder.and_then(|id| self.instance(id)).map(|row| row.power);
                if !matches!(power, Some(Power::Running | Power::Stopped)) {
                    return Err(Refusal::new(400, "IncorrectInstanceStatus"));
                }
            }
            _ => return Err(Refusal::new(403, "IncorrectDiskStatus")),
        }
        let essd = size::is_essd(&row.category);
        let of_disk = self.snapshots_of(disk);
        let running = of_disk
            .filter(|row| row.stage == Stage::Progressing)
            .count();
        if essd && running >= MOST_AT_ONCE {
            return Err(Refusal::new(403, "QuotaExceed.ConcurrentSnapshotQuota"));
        }
        if self.snapshots_of(disk).count() >= MOST {
            return Err(self.alternative(&[
                (403, "QuotaExceed.SnapshotQuota"),
                (403, "QuotaExceed.Snapshot"),
            ]));
        }
        if !essd && running >= 1 {
            return Err(self.alternative(&[
                (403, "IncorrectDiskStatus.CreatingSnapshot"),
                (403, "DISK_HAS_CREATING_SNAPSHOT"),
            ]));
        }
        Ok(())
    }

    fn snapshots_of(&self, disk: &str) -> impl Iterator<Item = &SnapshotRow> {
        let ids = self.cut_from.of(disk);
        ids.filter_map(|id| self.snapshots.get(id))
    }

    /// Whether a snapshot keeps the disk from being deleted or resized: until its point in time is
    /// cut, and in legacy categories until it is complete.
    pub(crate) fn is_being_snapshotted(&self, disk: &str) -> bool {
        self.snapshots_of(disk).any(|row| {
            row.stage == Stage::Progressing && (row.cut.is_none() || !size::is_essd(&row.category))
        })
    }

    pub(crate) fn delete_snapshot(&mut self, params: &Params) -> Reply {
        let id = params.required("SnapshotId")?;
        let force = params.flag("Force")?;
        if self.snapshot(id).is_none() {
            return if self.config.rules.missing_is_error {
                Err(Refusal::new(404, "InvalidSnapshotId.NotFound"))
            } else {
                Ok(Answer::Done)
            };
        }
        let used = self.made_from.of(id).next().is_some();
        if used && !force && self.config.rules.snapshot_in_use {
            return Err(Refusal::new(403, "SnapshotCreatedDisk"));
        }
        if let Some(refusal) = self.held(id) {
            return Err(refusal);
        }
        self.drop_snapshot(id);
        Ok(Answer::Done)
    }

    /// Why the snapshot cannot be deleted, not even by force.
    pub(super) fn held(&self, id: &str) -> Option<Refusal> {
        let holds = &self.config.holds;
        let has = |ids: &[String]| ids.iter().any(|held| held == id);
        if has(&holds.images) {
            return Some(Refusal::new(403, "SnapshotCreatedImage"));
        }
        has(&holds.locked).then(|| Refusal::new(403, "InvalidOperation.SnapshotIsLocked"))
    }

    pub(super) fn drop_snapshot(&mut self, id: &str) {
        self.agenda.cancel(|due| {
            matches!(
                due,
                Due::Cut { snapshot }
                    | Due::Accomplished { snapshot }
                    | Due::SnapshotExpired { snapshot } if snapshot == id
            )
        });
        if let Some(old) = self.snapshots.remove(id) {
            self.cut_from.remove(&old.disk, id);
            self.note_snapshot(id, Some(&old), None);
            self.shrink_group(old.group.as_deref());
        }
        let snapshot = id.to_owned();
        self.plan(Duration::ZERO, Due::SnapshotDeleted { snapshot });
    }

    pub(crate) fn snapshot_expired(&mut self, id: &str) {
        if self.held(id).is_none() {
            self.drop_snapshot(id);
        }
    }

    pub(crate) fn snapshot(&self, id: &str) -> Option<&SnapshotRow> {
        self.snapshots.get(id)
    }

    pub(crate) fn change_snapshot(&mut self, id: &str, change: impl FnOnce(&mut SnapshotRow)) {
        let Some(row) = self.snapshots.get_mut(id) else {
            return;
        };
        let old = row.clone();
        change(row);
        let new = row.clone();
        self.note_snapshot(id, Some(&old), Some(&new));
    }

    fn note_snapshot(&mut self, id: &str, old: Option<&SnapshotRow>, new: Option<&SnapshotRow>) {
        let memory = self.config.stale.memory();
        if memory.is_zero() {
            self.old_snapshots.clear();
        } else {
            let horizon = before(self.now, memory);
            self.old_snapshots.note(id, old, new, self.now, horizon);
        }
    }

    pub(crate) fn snapshot_cut(&mut self, id: &str, success: bool) {
        let now = self.now;
        if !success {
            self.snapshot_failed(id);
            return;
        }
        let Some(row) = self.snapshots.get(id) else {
            return;
        };
        let rest = until(now, row.ends);
        self.change_snapshot(id, |row| row.cut = Some(now));
        let snapshot = id.to_owned();
        self.plan(rest, Due::Accomplished { snapshot });
    }

    pub(crate) fn snapshot_accomplished(&mut self, id: &str) {
        self.change_snapshot(id, |row| row.stage = Stage::Accomplished);
    }

    pub(crate) fn snapshot_failed(&mut self, id: &str) {
        self.change_snapshot(id, |row| row.stage = Stage::Failed);
    }
}
