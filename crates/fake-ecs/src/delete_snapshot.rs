//! `DeleteSnapshot`, and deletion at the end of the retention period.

use std::time::Duration;

use super::api_error::ApiError;
use super::config::Holds;
use super::event_queue::Event;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::world::World;

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
    let used = world.disks.has_copy_of(id);
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
        remove_group_if_empty(world, old.group.as_deref());
    }
    let snapshot = id.to_owned();
    world.schedule(Duration::ZERO, Event::SnapshotDeleted { snapshot });
}

pub(crate) fn snapshot_expired(world: &mut World, id: &str) {
    if held(&world.config.holds, id).is_none() {
        drop_snapshot(world, id);
    }
}

/// Deletes the group with its last snapshot.
fn remove_group_if_empty(world: &mut World, group: Option<&str>) {
    let Some(group) = group else { return };
    if world.snapshots.of_group(group).is_empty() {
        world.groups.remove(world.retention(), group);
    }
}
