//! Snapshots, `CreateSnapshot` and `DeleteSnapshot`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::action::Action;
use super::client_token;
use super::config::{Delays, Holds};
use super::distribution::{after, until};
use super::event_queue::Event;
use super::group;
use super::history::{History, Retention};
use super::index::Index;
use super::instance::PowerState;
use super::name;
use super::params::Params;
use super::response::{ApiError, ApiResponse, ApiResult};
use super::rng::Rng;
use super::size;
use super::tag;
use super::world::World;

/// Maximum number of manual snapshots of a disk.
const MAX: usize = 256;
/// Maximum number of snapshots in progress of a disk of the ESSD family.
const MAX_IN_PROGRESS: usize = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    Progressing,
    Accomplished,
    Failed,
}

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
    /// When the point in time was captured.
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

    /// Whether disks can be created from it: immediately in the ESSD family, otherwise when it is complete.
    pub(crate) fn available(&self) -> bool {
        match self.stage {
            Stage::Progressing => self.cut.is_some() && size::is_essd(&self.category),
            Stage::Accomplished => true,
            Stage::Failed => false,
        }
    }

    /// In percent.
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

/// All snapshots, with the index of their source disks and their earlier versions.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    rows: BTreeMap<String, SnapshotRow>,
    by_disk: Index,
    pub(crate) history: History<SnapshotRow>,
}

impl Snapshots {
    pub(crate) fn get(&self, id: &str) -> Option<&SnapshotRow> {
        self.rows.get(id)
    }

    pub(crate) fn rows(&self) -> &BTreeMap<String, SnapshotRow> {
        &self.rows
    }

    fn of_disk(&self, disk: &str) -> impl Iterator<Item = &SnapshotRow> {
        let ids = self.by_disk.of(disk);
        ids.filter_map(|id| self.rows.get(id))
    }

    /// The IDs of the members of a snapshot group.
    pub(crate) fn of_group(&self, group: &str) -> Vec<String> {
        let rows = self.rows.values();
        let members = rows.filter(|row| row.group.as_deref() == Some(group));
        members.map(|row| row.id.clone()).collect()
    }

    /// The IDs that a list at `time` can contain.
    pub(crate) fn ids_as_of(&self, time: Option<Timestamp>) -> BTreeSet<String> {
        let mut ids: BTreeSet<String> = self.rows.keys().cloned().collect();
        if time.is_some() {
            ids.extend(self.history.ids().cloned());
        }
        ids
    }

    /// The snapshot as a read at `time` returns it.
    pub(crate) fn as_of(&self, id: &str, time: Option<Timestamp>) -> Option<&SnapshotRow> {
        match time.and_then(|time| self.history.at(id, time)) {
            Some(old) => old,
            None => self.get(id),
        }
    }

    /// Whether a snapshot prevents deletion and resizing of the disk: until its point in time is captured, and in
    /// legacy categories until it is complete.
    pub(crate) fn block(&self, disk: &str) -> bool {
        self.of_disk(disk).any(|row| {
            row.stage == Stage::Progressing && (row.cut.is_none() || !size::is_essd(&row.category))
        })
    }

    /// Changes a snapshot if it exists.
    pub(crate) fn change(
        &mut self,
        retention: Retention,
        id: &str,
        change: impl FnOnce(&mut SnapshotRow),
    ) {
        let Some(row) = self.rows.get_mut(id) else {
            return;
        };
        let old = row.clone();
        change(row);
        self.history.record(id, Some(&old), Some(row), retention);
    }

    fn insert(&mut self, retention: Retention, row: SnapshotRow) {
        self.history.record(&row.id, None, Some(&row), retention);
        self.by_disk.add(&row.disk, &row.id);
        self.rows.insert(row.id.clone(), row);
    }

    fn remove(&mut self, retention: Retention, id: &str) -> Option<SnapshotRow> {
        let old = self.rows.remove(id)?;
        self.by_disk.remove(&old.disk, id);
        self.history.record(id, Some(&old), None, retention);
        Some(old)
    }
}

pub(crate) fn create_snapshot(world: &mut World, params: &Params, fails_later: bool) -> ApiResult {
    params.required("DiskId")?;
    client_token::once(world, Action::CreateSnapshot, params, |world| {
        create_snapshot_once(world, params, fails_later)
    })
}

fn create_snapshot_once(world: &mut World, params: &Params, fails_later: bool) -> ApiResult {
    let disk = params.required("DiskId")?;
    let snapshot_name = params.get("SnapshotName").unwrap_or_default();
    name::check(snapshot_name, "InvalidSnapshotName.Malformed")?;
    if snapshot_name.starts_with("auto") {
        return Err(ApiError::new(400, "InvalidSnapshotName.Malformed"));
    }
    let retention_days: Option<u32> = params.parsed("RetentionDays")?;
    if retention_days.is_some_and(|days| !(1..=65536).contains(&days)) {
        return Err(ApiError::new(400, "InvalidRetentionDays.Malformed"));
    }
    let tags = params.tags()?;
    tag::check_count(&tags)?;
    check_snapshot_source(world, disk)?;
    let Some(source) = world.disks.get(disk).cloned() else {
        return Err(ApiError::new(404, "InvalidDiskId.NotFound"));
    };
    let (cut, whole) = snapshot_delays(&world.config.delays, &mut world.rng);
    let id = format!("s-{}", world.rng.body());
    put_snapshot(
        world,
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
            begun: world.now,
            ends: after(world.now, whole),
            retention_days,
            resource_group: params.get("ResourceGroupId").map(str::to_owned),
            group: None,
            tags,
        },
    );
    Ok(ApiResponse::Snapshot(id))
}

/// The delays until the point in time is captured and until the snapshot is complete.
pub(super) fn snapshot_delays(delays: &Delays, rng: &mut Rng) -> (Duration, Duration) {
    let cut = delays.cut.draw(rng);
    (cut, delays.snapshot.draw(rng).max(cut))
}

/// Adds a snapshot in progress and schedules its events.
pub(super) fn put_snapshot(world: &mut World, cut: Duration, fails_later: bool, row: SnapshotRow) {
    let snapshot = row.id.clone();
    if let Some(days) = row.retention_days {
        let snapshot = snapshot.clone();
        let lifetime = Duration::from_hours(24 * u64::from(days));
        world.schedule(lifetime, Event::SnapshotExpired { snapshot });
    }
    world.snapshots.insert(world.retention(), row);
    let due = if fails_later {
        Event::SnapshotFailed { snapshot }
    } else {
        Event::Cut { snapshot }
    };
    world.schedule(cut, due);
}

pub(super) fn check_snapshot_source(world: &mut World, disk: &str) -> Result<(), ApiError> {
    let missing = || ApiError::new(404, "InvalidDiskId.NotFound");
    let row = world.disks.get(disk).ok_or_else(missing)?;
    if size::is_ephemeral(&row.category) {
        return Err(world.documented_error(&[
            (400, "DiskCategory.OperationNotSupported"),
            (403, "IncorrectDiskType.NotSupport"),
            (403, "DiskId.ValueNotSupported"),
        ]));
    }
    match row.status() {
        "Available" if world.config.rules.never_attached && row.attached.is_none() => {
            return Err(ApiError::new(403, "IncorrectDiskStatus.NeverAttached"));
        }
        "Available" => {}
        "In_use" => {
            let holder = row.attachments.first().map(|a| a.instance.as_str());
            let power = holder
                .and_then(|id| world.instances.get(id))
                .map(|row| row.power);
            if !matches!(power, Some(PowerState::Running | PowerState::Stopped)) {
                return Err(ApiError::new(400, "IncorrectInstanceStatus"));
            }
        }
        _ => return Err(ApiError::new(403, "IncorrectDiskStatus")),
    }
    let essd = size::is_essd(&row.category);
    let of_disk = world.snapshots.of_disk(disk);
    let running = of_disk
        .filter(|row| row.stage == Stage::Progressing)
        .count();
    if essd && running >= MAX_IN_PROGRESS {
        return Err(ApiError::new(403, "QuotaExceed.ConcurrentSnapshotQuota"));
    }
    if world.snapshots.of_disk(disk).count() >= MAX {
        return Err(world.documented_error(&[
            (403, "QuotaExceed.SnapshotQuota"),
            (403, "QuotaExceed.Snapshot"),
        ]));
    }
    if !essd && running >= 1 {
        return Err(world.documented_error(&[
            (403, "IncorrectDiskStatus.CreatingSnapshot"),
            (403, "DISK_HAS_CREATING_SNAPSHOT"),
        ]));
    }
    Ok(())
}

pub(crate) fn delete_snapshot(world: &mut World, params: &Params) -> ApiResult {
    let id = params.required("SnapshotId")?;
    let force = params.flag("Force")?;
    if world.snapshots.get(id).is_none() {
        return if world.config.rules.missing_is_error {
            Err(ApiError::new(404, "InvalidSnapshotId.NotFound"))
        } else {
            Ok(ApiResponse::Done)
        };
    }
    let used = world.disks.made_from(id).next().is_some();
    if used && !force && world.config.rules.snapshot_in_use {
        return Err(ApiError::new(403, "SnapshotCreatedDisk"));
    }
    if let Some(error) = held(&world.config.holds, id) {
        return Err(error);
    }
    drop_snapshot(world, id);
    Ok(ApiResponse::Done)
}

/// The reason why the snapshot cannot be deleted even with `Force`.
pub(super) fn held(holds: &Holds, id: &str) -> Option<ApiError> {
    let has = |ids: &[String]| ids.iter().any(|held| held == id);
    if has(&holds.images) {
        return Some(ApiError::new(403, "SnapshotCreatedImage"));
    }
    has(&holds.locked).then(|| ApiError::new(403, "InvalidOperation.SnapshotIsLocked"))
}

pub(super) fn drop_snapshot(world: &mut World, id: &str) {
    world.events.cancel(|due| {
        matches!(
            due,
            Event::Cut { snapshot }
                | Event::Accomplished { snapshot }
                | Event::SnapshotExpired { snapshot } if snapshot == id
        )
    });
    if let Some(old) = world.snapshots.remove(world.retention(), id) {
        group::remove_if_empty(world, old.group.as_deref());
    }
    let snapshot = id.to_owned();
    world.schedule(Duration::ZERO, Event::SnapshotDeleted { snapshot });
}

pub(crate) fn snapshot_expired(world: &mut World, id: &str) {
    if held(&world.config.holds, id).is_none() {
        drop_snapshot(world, id);
    }
}

pub(crate) fn snapshot_captured(world: &mut World, id: &str, success: bool) {
    let now = world.now;
    if !success {
        snapshot_failed(world, id);
        return;
    }
    let Some(row) = world.snapshots.get(id) else {
        return;
    };
    let rest = until(now, row.ends);
    world
        .snapshots
        .change(world.retention(), id, |row| row.cut = Some(now));
    let snapshot = id.to_owned();
    world.schedule(rest, Event::Accomplished { snapshot });
}

pub(crate) fn snapshot_accomplished(world: &mut World, id: &str) {
    world
        .snapshots
        .change(world.retention(), id, |row| row.stage = Stage::Accomplished);
}

pub(crate) fn snapshot_failed(world: &mut World, id: &str) {
    world
        .snapshots
        .change(world.retention(), id, |row| row.stage = Stage::Failed);
}
