//! `DetachDisk`.

use super::api_error::ApiError;
use super::attach;
use super::attach::check_ephemeral;
use super::disk::{AttachmentState, Phase};
use super::event_queue::Event;
use super::instance::PowerState;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::world::World;

pub(crate) fn detach_disk(world: &mut World, params: &Params, fails_later: bool) -> ApiResult {
    let instance = params.required("InstanceId")?;
    let disk = params.required("DiskId")?;
    let Some(machine) = world.instances.get(instance) else {
        return Err(ApiError::new(404, "InvalidInstanceId.NotFound"));
    };
    let power = machine.power;
    let row = world.disks.existing(disk)?;
    let detach_stuck = row.detach_stuck || fails_later;
    if row.phase == Phase::Creating {
        return Err(ApiError::new(403, "IncorrectDiskStatus"));
    }
    if row.system {
        return Err(ApiError::new(403, "DiskTypeViolation"));
    }
    if !row.portable {
        return Err(ApiError::new(403, "DiskNotPortable"));
    }
    check_ephemeral(row, params.flag("DeleteWithInstance")?)?;
    if row.multi_attach && params.get("DeleteWithInstance").is_some() {
        return Err(ApiError::new(403, "DeleteWithInstance.Conflict"));
    }
    match row.on(instance).map(|attachment| attachment.state) {
        Some(AttachmentState::Attached) => {}
        Some(AttachmentState::Attaching) => return Err(ApiError::new(403, "IncorrectDiskStatus")),
        Some(AttachmentState::Detaching) => {
            return Err(world.documented_error(&[
                (403, "InvalidOperation.DiskDetachingFromThisEcs"),
                (403, "IncorrectDiskStatus"),
            ]));
        }
        None if row.attachments.is_empty() => {
            return Err(world.documented_error(&[
                (403, "DependencyViolation"),
                (404, "InvalidDisk.AlreadyDetached"),
                (403, "IncorrectDiskStatus"),
            ]));
        }
        None => return Err(ApiError::new(403, "DependencyViolation")),
    }
    if !matches!(power, PowerState::Running | PowerState::Stopped) {
        return Err(ApiError::new(403, "IncorrectInstanceStatus"));
    }
    if !attach::may_start(world, instance, AttachmentState::Detaching) {
        return Err(world.documented_error(&[(403, "InvalidOperation.Conflict"), (400, "DisksDetachingOnEcsExceeded")]));
    }
    begin_detach(world, disk, instance, detach_stuck);
    Ok(ApiResponse::Done)
}

/// Starts to detach the disk. A stuck detach never completes.
pub(crate) fn begin_detach(world: &mut World, disk: &str, instance: &str, detach_stuck: bool) {
    world.disks.change(world.retention(), disk, |row| {
        let mut attachments = row.attachments.iter_mut();
        if let Some(attachment) = attachments.find(|a| a.instance == instance) {
            attachment.state = AttachmentState::Detaching;
        }
        row.detach_stuck = detach_stuck;
    });
    if !detach_stuck {
        let delay = world.config.delays.detach.draw(&mut world.rng);
        let (disk, instance) = (disk.to_owned(), instance.to_owned());
        world.schedule(delay, Event::Detached { disk, instance });
    }
}

pub(crate) fn detach_finished(world: &mut World, disk: &str, instance: &str) {
    let now = world.now;
    world.disks.change(world.retention(), disk, |row| {
        row.attachments.retain(|a| a.instance != instance);
        row.detached = Some(now);
    });
}

pub(crate) fn release(world: &mut World, disk: &str) {
    let Some(row) = world.disks.get_any(disk).filter(|row| row.detach_stuck) else {
        return;
    };
    let stuck = row.attachments.iter().filter(|a| a.state == AttachmentState::Detaching);
    let instances: Vec<String> = stuck.map(|a| a.instance.clone()).collect();
    for instance in instances {
        begin_detach(world, disk, &instance, false);
    }
}
