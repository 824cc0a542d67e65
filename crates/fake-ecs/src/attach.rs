//! `AttachDisk`.

use std::collections::BTreeMap;

use super::api_error::ApiError;
use super::disk::{Attachment, AttachmentState, DiskRow, Disks, Phase};
use super::event_queue::Event;
use super::instance::{InstanceRow, PowerState};
use super::instance_type::InstanceTypeSpec;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::size;
use super::world::World;

/// Maximum number of instances that share a disk.
const MAX_SHARED_ATTACHMENTS: usize = 16;

/// The regional category, the only one that supports `Force`.
const REGIONAL: &str = "cloud_regional_disk_auto";

/// Checks that a disk of this kind can be attached to and detached from instances.
pub(crate) fn check_kind(row: &DiskRow) -> Result<(), ApiError> {
    if !row.portable {
        return Err(ApiError::new(403, "DiskNotPortable"));
    }
    if row.category.starts_with("local_") || row.category.starts_with("ephemeral") {
        return Err(ApiError::new(400, "DiskCategory.OperationNotSupported"));
    }
    Ok(())
}

/// Checks that an elastic ephemeral disk is attached or detached with `DeleteWithInstance`.
pub(crate) fn check_ephemeral(row: &DiskRow, delete_with_instance: bool) -> Result<(), ApiError> {
    if size::is_ephemeral(&row.category) && !delete_with_instance {
        let code = "InvalidParameter.DeleteWithInstance";
        return Err(ApiError::new(403, code));
    }
    Ok(())
}

pub(crate) fn attach_disk(world: &mut World, params: &Params, fails_later: bool) -> ApiResult {
    let instance = params.required("InstanceId")?;
    let disk = params.required("DiskId")?;
    let delete_with_instance = params.flag("DeleteWithInstance")?;
    let force = params.flag("Force")?;
    if !world.instances.contains_key(instance) {
        return Err(ApiError::new(404, "InvalidInstanceId.NotFound"));
    }
    let row = world.disks.existing(disk)?.clone();
    check_kind(&row)?;
    check_ephemeral(&row, delete_with_instance)?;
    if row.bound_to.as_ref().is_some_and(|bound| bound != instance) {
        let code = "InvalidOperation.OtherInstanceUnsupported";
        return Err(ApiError::new(403, code));
    }
    if force {
        check_force(&world.instances, &row, instance)?;
    } else {
        check_attachable(world, &row, instance)?;
    }
    check_instance_supports(world, &row, instance)?;
    // Must be absent whatever its value (ECS, multi-attach).
    if row.multi_attach && params.get("DeleteWithInstance").is_some() {
        return Err(ApiError::new(403, "DeleteWithInstance.Conflict"));
    }
    if !may_start(world, instance, AttachmentState::Attaching) {
        return Err(world.documented_error(&[
            (403, "InvalidOperation.Conflict"),
            (400, "OperationConflict.DisksAttachingParallellyExceed"),
        ]));
    }
    let attachment = Attachment {
        instance: instance.to_owned(),
        state: AttachmentState::Attaching,
        device: free_device(&world.disks, instance),
        since: world.now,
    };
    if force {
        world
            .events
            .cancel(|due| matches!(due, Event::Detached { disk: d, .. } if d == disk));
    }
    let attached_to = instance.to_owned();
    world.disks.change(world.retention(), disk, |row| {
        if force {
            // I/O of the previous instance fails from now on.
            row.attachments.clear();
            row.detach_stuck = false;
        }
        row.attachments.push(attachment);
        row.delete_with_instance = delete_with_instance;
        if size::is_ephemeral(&row.category) {
            row.bound_to = Some(attached_to);
        }
    });
    let delay = world.config.delays.attach.draw(&mut world.rng);
    let (disk, instance) = (disk.to_owned(), instance.to_owned());
    let due = if fails_later {
        Event::AttachFailed { disk, instance }
    } else {
        Event::Attached { disk, instance }
    };
    world.schedule(delay, due);
    Ok(ApiResponse::Done)
}

fn check_attachable(world: &mut World, row: &DiskRow, instance: &str) -> Result<(), ApiError> {
    if row.phase == Phase::Creating {
        return Err(ApiError::new(403, "IncorrectDiskStatus"));
    }
    let held = if row.multi_attach {
        row.on(instance)
    } else {
        row.attachments.first()
    };
    match held.map(|attachment| attachment.state) {
        None => {}
        Some(AttachmentState::Attaching) => {
            return Err(world.documented_error(&[(403, "IncorrectDiskStatus"), (403, "InvalidOperation.Conflict")]));
        }
        Some(AttachmentState::Attached) => {
            return Err(world.documented_error(&[(403, "IncorrectDiskStatus"), (404, "InvalidDisk.InUse")]));
        }
        Some(AttachmentState::Detaching) => return Err(ApiError::new(403, "IncorrectDiskStatus")),
    }
    if row.attachments.len() >= MAX_SHARED_ATTACHMENTS {
        return Err(ApiError::new(403, "DiskAttachedNumberExceeded"));
    }
    Ok(())
}

/// Checks that a forced attach may move the disk from an instance in another zone.
fn check_force(instances: &BTreeMap<String, InstanceRow>, row: &DiskRow, instance: &str) -> Result<(), ApiError> {
    let code = |reason| ApiError::new(400, format!("InvalidParameterForce.{reason}"));
    if row.category != REGIONAL {
        return Err(code("DiskCategoryNotSupported"));
    }
    if row.multi_attach {
        return Err(code("MultiAttachDiskNotSupported"));
    }
    if row.phase == Phase::Creating {
        return Err(ApiError::new(403, "IncorrectDiskStatus"));
    }
    let zone = |id: &str| instances.get(id).map(|row| row.zone.clone());
    match row.attachments.first() {
        Some(held) if zone(&held.instance) == zone(instance) => Err(ApiError::new(403, "InvalidInstance.ZoneConflict")),
        Some(held) if held.state == AttachmentState::Attaching => Err(ApiError::new(403, "IncorrectDiskStatus")),
        _ => Ok(()),
    }
}

fn check_instance_supports(world: &World, row: &DiskRow, instance: &str) -> Result<(), ApiError> {
    let missing = || ApiError::new(404, "InvalidInstanceId.NotFound");
    let machine = world.instances.get(instance).ok_or_else(missing)?;
    let ready = match machine.power {
        // Observed on the real cloud: an instance described as Running is not ready yet.
        PowerState::Running => machine.ready <= world.now,
        PowerState::Stopped => true,
        PowerState::Pending | PowerState::Starting | PowerState::Stopping => false,
    };
    if !ready {
        return Err(ApiError::new(400, "IncorrectInstanceStatus"));
    }
    // A regional disk has no zone and attaches in all of them.
    if !row.zone.is_empty() && machine.zone != row.zone {
        return Err(ApiError::new(403, "ResourcesNotInSameZone"));
    }
    let kind = InstanceTypeSpec::named(&machine.instance_type);
    if !kind.supports(&row.category) {
        return Err(ApiError::new(403, "InvalidInstanceType.NotSupportDiskCategory"));
    }
    if row.multi_attach && kind.nvme == "unsupported" {
        return Err(ApiError::new(403, "InvalidInstanceType.NvmeUnsupported"));
    }
    let most = world.config.rules.disk_quantity.unwrap_or(kind.disk_quantity);
    // The system disk, which every instance has, counts towards the limit.
    let held = 1 + world.disks.data_disks_of(instance).count();
    if held >= usize::try_from(most).unwrap_or(usize::MAX) {
        return Err(ApiError::new(403, "InstanceDiskLimitExceeded"));
    }
    Ok(())
}

/// Whether the instance may start another attach or detach operation.
pub(crate) fn may_start(world: &World, instance: &str, state: AttachmentState) -> bool {
    if !world.config.rules.serial_attach_detach {
        return true;
    }
    let running = world
        .disks
        .attachments_of(instance)
        .filter(|a| a.state == state)
        .count();
    let moving = |a: &&Attachment| a.state != AttachmentState::Attached;
    if world.config.rules.exclusive_attach_detach && world.disks.attachments_of(instance).filter(moving).count() > 0 {
        return false;
    }
    let tag = |key| {
        let row = world.instances.get(instance);
        row.is_some_and(|row| row.tags.get(key).is_some_and(|value| value == "true"))
    };
    match state {
        AttachmentState::Attaching => running == 0 || tag("supportConcurrencyAttach"),
        // The real cloud then allows five at a time.
        _ => running == 0 || tag("supportConcurrencyDetach") && running < 5,
    }
}

fn free_device(disks: &Disks, instance: &str) -> String {
    let used: Vec<&str> = disks.attachments_of(instance).map(|a| a.device.as_str()).collect();
    let names = ('b'..='z').map(|letter| format!("/dev/xvd{letter}"));
    names
        .chain(('a'..='z').map(|letter| format!("/dev/xvda{letter}")))
        .find(|name| !used.contains(&name.as_str()))
        .unwrap_or_default()
}

pub(crate) fn attach_finished(world: &mut World, disk: &str, instance: &str, success: bool) {
    let now = world.now;
    world.disks.change(world.retention(), disk, |row| {
        if !success {
            row.attachments
                .retain(|a| a.instance != instance || a.state != AttachmentState::Attaching);
            return;
        }
        let mut attachments = row.attachments.iter_mut();
        if let Some(attachment) = attachments.find(|a| a.instance == instance) {
            attachment.state = AttachmentState::Attached;
            attachment.since = now;
            row.attached = Some(now);
        }
    });
}
