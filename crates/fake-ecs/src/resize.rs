//! `ResizeDisk`.

use std::collections::BTreeMap;

use super::action::Action;
use super::api_error::ApiError;
use super::client_token;
use super::event_queue::Event;
use super::instance::{InstanceRow, PowerState};
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::size;
use super::task;
use super::world::World;

pub(crate) fn resize_disk(world: &mut World, params: &Params) -> ApiResult {
    params.required("DiskId")?;
    params.required("NewSize")?;
    client_token::once(world, Action::ResizeDisk, params, |world| {
        resize_disk_once(world, params)
    })
}

fn resize_disk_once(world: &mut World, params: &Params) -> ApiResult {
    let id = params.required("DiskId")?;
    let wanted: u32 = params.parsed("NewSize")?.unwrap_or(0);
    let online = match params.get("Type") {
        None | Some("offline") => false,
        Some("online") => true,
        Some(_) => return Err(ApiError::new(400, "InvalidParam.Type")),
    };
    let row = world.disks.existing(id)?.clone();
    match row.status() {
        "In_use" if online => check_running(&world.instances, &row.attachments[0].instance)?,
        "In_use" => {}
        "Available" if !online => {}
        _ => return Err(ApiError::new(403, "IncorrectDiskStatus")),
    }
    if online && row.category == "cloud" {
        return Err(ApiError::new(403, "InvalidDiskSize.NotSupportResizeOnline"));
    }
    if row.growing.is_some() || task::is_changing(&world.tasks, id) {
        return Err(ApiError::new(400, "LastOrderProcessing"));
    }
    if world.snapshots.block(id) {
        return Err(ApiError::new(403, "DiskCreatingSnapshot"));
    }
    if wanted <= row.size {
        return Err(world.documented_error(&[(403, "InvalidDiskSize"), (403, "InvalidDiskSize.TooSmall")]));
    }
    let sizes = size::sizes(&row.category, row.level.as_deref());
    if sizes.is_none_or(|sizes| wanted > *sizes.end()) {
        return Err(world.documented_error(&[
            (403, "InvalidDiskSize.TooLarge"),
            (403, "InvalidDataDiskSize.ValueNotSupported"),
        ]));
    }
    world
        .disks
        .change(world.retention(), id, |row| row.growing = Some(wanted));
    let delay = world.config.delays.resize.draw(&mut world.rng);
    let due = Event::Resized {
        disk: id.to_owned(),
        size: wanted,
        visible: online || row.attachments.is_empty(),
    };
    world.schedule(delay, due);
    Ok(ApiResponse::Done)
}

fn check_running(instances: &BTreeMap<String, InstanceRow>, instance: &str) -> Result<(), ApiError> {
    match instances.get(instance).map(|row| row.power) {
        Some(PowerState::Running) => Ok(()),
        _ => Err(ApiError::new(403, "InvalidInstanceStatus.NotRunning")),
    }
}

pub(crate) fn resize_finished(world: &mut World, disk: &str, size: u32, success: bool) {
    world.disks.change(world.retention(), disk, |row| {
        row.growing = None;
        if success {
            row.size = size;
        }
    });
}
