//! `CreateSnapshot`, and the states of a new snapshot.

use std::time::Duration;

use super::action::Action;
use super::api_error::ApiError;
use super::client_token;
use super::config::Delays;
use super::disk::DiskRow;
use super::distribution::{after, until};
use super::event_queue::Event;
use super::instance::PowerState;
use super::name;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::rng::Rng;
use super::size;
use super::snapshot::{SnapshotRow, Stage};
use super::tag;
use super::world::World;

/// Maximum number of manual snapshots of a disk.
const MAX: usize = 256;

/// Maximum number of snapshots in progress of a disk of the ESSD family.
const MAX_IN_PROGRESS: usize = 10;

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
    let source = world.disks.existing(disk)?.clone();
    let delays = snapshot_delays(&world.config.delays, &mut world.rng);
    let row = SnapshotRow {
        name: snapshot_name.to_owned(),
        description: params.get("Description").unwrap_or_default().to_owned(),
        retention_days,
        resource_group: params.get("ResourceGroupId").map(str::to_owned),
        tags,
        ..SnapshotRow::default()
    };
    let id = put_snapshot(world, source, delays, fails_later, row);
    Ok(ApiResponse::Snapshot(id))
}

/// The delays until the point in time is captured and until the snapshot is complete.
pub(super) fn snapshot_delays(delays: &Delays, rng: &mut Rng) -> (Duration, Duration) {
    let cut = delays.cut.draw(rng);
    (cut, delays.snapshot.draw(rng).max(cut))
}

/// Adds a snapshot of a disk, schedules its events, and returns its ID.
pub(super) fn put_snapshot(
    world: &mut World,
    source: DiskRow,
    (cut, whole): (Duration, Duration),
    fails_later: bool,
    row: SnapshotRow,
) -> String {
    let id = format!("s-{}", world.rng.body());
    let row = SnapshotRow {
        id: id.clone(),
        disk: source.id,
        category: source.category,
        size: source.size,
        encrypted: source.encrypted,
        begun: world.now,
        ends: after(world.now, whole),
        ..row
    };
    let snapshot = id.clone();
    if let Some(days) = row.retention_days {
        let snapshot = snapshot.clone();
        let lifetime = Duration::from_hours(24 * u64::from(days));
        world.schedule(lifetime, Event::SnapshotExpired { snapshot });
    }
    world.snapshots.insert(world.retention(), id.clone(), row);
    let due = if fails_later {
        Event::SnapshotFailed { snapshot }
    } else {
        Event::Cut { snapshot }
    };
    world.schedule(cut, due);
    id
}

pub(super) fn check_snapshot_source(world: &mut World, disk: &str) -> Result<(), ApiError> {
    let row = world.disks.existing(disk)?;
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
            let power = holder.and_then(|id| world.instances.get(id)).map(|row| row.power);
            if !matches!(power, Some(PowerState::Running | PowerState::Stopped)) {
                return Err(ApiError::new(400, "IncorrectInstanceStatus"));
            }
        }
        _ => return Err(ApiError::new(403, "IncorrectDiskStatus")),
    }
    let essd = size::is_essd(&row.category);
    let of_disk = world.snapshots.of_disk(disk);
    let running = of_disk.filter(|row| row.stage == Stage::Progressing).count();
    if essd && running >= MAX_IN_PROGRESS {
        return Err(ApiError::new(403, "QuotaExceed.ConcurrentSnapshotQuota"));
    }
    if world.snapshots.of_disk(disk).count() >= MAX {
        return Err(world.documented_error(&[(403, "QuotaExceed.SnapshotQuota"), (403, "QuotaExceed.Snapshot")]));
    }
    if !essd && running >= 1 {
        return Err(world.documented_error(&[
            (403, "IncorrectDiskStatus.CreatingSnapshot"),
            (403, "DISK_HAS_CREATING_SNAPSHOT"),
        ]));
    }
    Ok(())
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
    world.snapshots.change(world.retention(), id, |row| row.cut = Some(now));
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
