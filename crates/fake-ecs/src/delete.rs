//! `DeleteDisk`.

use super::api_error::ApiError;
use super::disk::Phase;
use super::event_queue::Event;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::task;
use super::world::World;

pub(crate) fn delete_disk(world: &mut World, params: &Params) -> ApiResult {
    let id = params.required("DiskId")?;
    let Some(row) = world.disks.get(id) else {
        // The description says that the call is ignored, while the table of errors lists it.
        return if world.config.rules.missing_is_error {
            Err(ApiError::new(404, "InvalidDiskId.NotFound"))
        } else {
            Ok(ApiResponse::Done)
        };
    };
    let (status, loading, serial) = (row.status(), row.loading, row.serial.clone());
    match status {
        "Available" => {}
        "Creating" => {
            return Err(
                world.documented_error(&[(403, "IncorrectDiskStatus"), (403, "IncorrectDiskStatus.Initializing")])
            );
        }
        "In_use" => {
            return Err(world.documented_error(&[(403, "DiskStillAttached"), (403, "IncorrectDiskStatus")]));
        }
        _ => return Err(ApiError::new(403, "IncorrectDiskStatus")),
    }
    if task::is_changing(&world.tasks, id) {
        return Err(ApiError::new(403, "IncorrectDiskStatus"));
    }
    if loading {
        return Err(ApiError::new(403, "IncorrectDiskStatus.Initializing"));
    }
    if world.snapshots.block(id) {
        return Err(ApiError::new(403, "DiskCreatingSnapshot"));
    }
    world
        .disks
        .change(world.retention(), id, |row| row.phase = Phase::Deleting);
    let delay = world.config.delays.delete.draw(&mut world.rng);
    let disk = id.to_owned();
    world.schedule(delay, Event::Deleted { disk, serial });
    Ok(ApiResponse::Done)
}
