//! `ModifyDiskSpec` and `ModifyDiskAttribute`.

use jiff::Timestamp;

use super::api_error::ApiError;
use super::disk::DiskRow;
use super::distribution::until;
use super::event_queue::Event;
use super::instance::PowerState;
use super::instance_type::InstanceTypeSpec;
use super::name;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::size;
use super::stock;
use super::task;
use super::task::{Spec, TaskRow, TaskState};
use super::world::World;

/// Categories that a disk can be changed from and to.
const CHANGEABLE: [&str; 4] = ["cloud_essd", "cloud_auto", "cloud_ssd", "cloud_efficiency"];

pub(crate) fn modify_disk_spec(world: &mut World, params: &Params, fails_later: bool) -> ApiResult {
    let id = params.required("DiskId")?;
    // An empty value is an invalid value here, not an absent one.
    if params.is_empty("PerformanceLevel") {
        return Err(ApiError::new(400, "InvalidPerformanceLevel.Malformed"));
    }
    if params.is_empty("DiskCategory") {
        return Err(ApiError::new(400, "InvalidDiskCategory.ValueNotSupported"));
    }
    let row = world.disks.existing(id)?.clone();
    check_changeable(world, &row)?;
    let to = spec_of(world, params, &row)?;
    let is = Spec {
        category: row.category.clone(),
        level: row.level.clone(),
        provisioned_iops: row.provisioned_iops,
    };
    if to == is {
        let code = "NoChangeInDiskCategoryAndPerformanceLevel";
        return Err(ApiError::new(403, code));
    }
    check_spec(world, &row, &to)?;
    if params.flag("DryRun")? {
        return Err(ApiError::dry_run());
    }
    if to.category == is.category {
        put_spec(world, id, to, None);
        return Ok(ApiResponse::Task(None));
    }
    let task = format!("t-{}", world.rng.body());
    world.tasks.push(TaskRow {
        id: task.clone(),
        disk: id.to_owned(),
        to,
        stage: TaskState::Processing,
        begun: world.now,
        ended: None,
    });
    let delay = world.config.delays.modify.draw(&mut world.rng);
    let due = Event::Modified {
        task: task.clone(),
        success: !fails_later,
    };
    world.schedule(delay, due);
    Ok(ApiResponse::Task(Some(task)))
}

/// Sets the spec of the disk. Bursting ends with the category that supports it.
pub(crate) fn put_spec(world: &mut World, disk: &str, to: Spec, changed: Option<Timestamp>) {
    world.disks.change(world.retention(), disk, |row| {
        row.bursting &= to.category == "cloud_auto";
        row.category = to.category;
        row.level = to.level;
        row.provisioned_iops = to.provisioned_iops;
        row.changed = changed.or(row.changed);
    });
}

fn check_changeable(world: &mut World, row: &DiskRow) -> Result<(), ApiError> {
    if task::is_changing(&world.tasks, &row.id) {
        return Err(world.documented_error(&[(403, "InvalidStatus.DiskNotReady"), (403, "IncorrectDiskStatus")]));
    }
    match row.status() {
        "Available" | "In_use" => {}
        "Creating" => return Err(ApiError::new(403, "InvalidStatus.DiskNotReady")),
        _ => return Err(ApiError::new(403, "IncorrectDiskStatus")),
    }
    if row.multi_attach {
        return Err(ApiError::new(403, "InvalidOperation.MultiAttachDisk"));
    }
    if !CHANGEABLE.contains(&row.category.as_str()) {
        return Err(ApiError::new(403, "InvalidDiskCategory.NotSupported"));
    }
    if world.snapshots.block(&row.id) {
        return Err(ApiError::new(403, "DiskCreatingSnapshot"));
    }
    if row.growing.is_some() {
        return Err(ApiError::new(403, "OperationDenied.DiskExpansionUnfinished"));
    }
    let held = row.attachments.first();
    let power = held.and_then(|held| world.instances.get(&held.instance));
    match power.map(|row| row.power) {
        None | Some(PowerState::Running | PowerState::Stopped) => Ok(()),
        Some(_) => Err(ApiError::new(400, "InvalidOperation.InstanceStatusUnsupported")),
    }
}

/// The spec that the parameters request; the disk's own where they do not set a field.
fn spec_of(world: &mut World, params: &Params, row: &DiskRow) -> Result<Spec, ApiError> {
    let category = params.get("DiskCategory").unwrap_or(&row.category);
    if !CHANGEABLE.contains(&category) {
        return Err(world.documented_error(&[
            (400, "InvalidDiskCategory.ValueNotSupported"),
            (403, "InvalidDiskCategory.NotSupported"),
        ]));
    }
    let essd = category == "cloud_essd";
    let level = match params.get("PerformanceLevel") {
        Some("PL0" | "PL1" | "PL2" | "PL3") if !essd => {
            return Err(ApiError::new(400, "InvalidPerformanceLevelParam.Mismatch"));
        }
        Some(level @ ("PL0" | "PL1" | "PL2" | "PL3")) => Some(level.to_owned()),
        Some(_) => return Err(ApiError::new(400, "InvalidPerformanceLevel.Malformed")),
        None if !essd => None,
        None => Some(row.level.clone().unwrap_or_else(|| "PL1".to_owned())),
    };
    let auto = category == "cloud_auto";
    let provisioned_iops = match params.parsed::<u64>("ProvisionedIops")? {
        Some(_) if !auto => {
            let code = "ProvisionedIopsForDiskCategoryUnsupported";
            return Err(ApiError::new(400, code));
        }
        Some(iops) => iops,
        None if auto => row.provisioned_iops,
        None => 0,
    };
    Ok(Spec {
        category: category.to_owned(),
        level,
        provisioned_iops,
    })
}

fn check_spec(world: &mut World, row: &DiskRow, to: &Spec) -> Result<(), ApiError> {
    if to.level.as_deref() == Some("PL0") && row.level.as_deref() != Some("PL0") {
        return Err(ApiError::new(403, "InvalidPerformanceLevel.TooLow"));
    }
    let sizes = size::sizes(&to.category, to.level.as_deref()).unwrap_or(0..=0);
    if !sizes.contains(&row.size) {
        let code = "OperationDenied.PerformanceLevelNotMatch";
        return Err(ApiError::new(403, code));
    }
    let most = u64::from(size::max_provisioned_iops(row.size));
    if to.category == "cloud_auto" && to.provisioned_iops > most {
        return Err(ApiError::new(400, "InvalidProvisionedIops.LimitExceed"));
    }
    if to.category == row.category {
        return Ok(());
    }
    if row
        .changed
        .is_some_and(|at| until(at, world.now) < world.config.rules.cooling_period)
    {
        return Err(ApiError::new(403, "DiskInCoolingPeriod"));
    }
    let holder = row.attachments.first().map(|held| held.instance.clone());
    let machine = holder.and_then(|id| world.instances.get(&id).map(|row| row.instance_type.clone()));
    if machine.is_some_and(|name| !InstanceTypeSpec::named(&name).supports(&to.category)) {
        return Err(world.documented_error(&[
            (403, "InvalidInstanceType.NotSupportDiskCategory"),
            (403, "InvalidDiskCategory.InstanceTypeUnsupported"),
        ]));
    }
    if stock::is_out_of_stock(&world.config.out_of_stock, &row.zone, None)
        || stock::is_out_of_stock(&world.config.out_of_stock, &row.zone, Some(&to.category))
    {
        return Err(ApiError::new(403, "OperationDenied.NoStock"));
    }
    Ok(())
}

pub(crate) fn modify_disk_attribute(world: &mut World, params: &Params) -> ApiResult {
    params.required("RegionId")?;
    let ids = match (params.get("DiskId"), params.list("DiskIds")) {
        (Some(_), ids) if !ids.is_empty() => {
            return Err(ApiError::new(400, "ParameterConflict.DiskIdAndDiskIds"));
        }
        (Some(id), _) => vec![id],
        (None, ids) if ids.is_empty() => {
            return Err(ApiError::new(400, "MissingParameter.DiskIdOrDiskIds"));
        }
        (None, ids) => ids,
    };
    let bursting: Option<bool> = params.parsed("BurstingEnabled")?;
    let delete_with_instance: Option<bool> = params.parsed("DeleteWithInstance")?;
    let disk_name = params.get("DiskName");
    name::check(disk_name.unwrap_or_default(), "InvalidDiskName.Malformed")?;
    let description = params.get("Description");
    if bursting.is_none() && delete_with_instance.is_none() && disk_name.is_none() && description.is_none() {
        return Err(ApiError::new(400, "NoAttributeToModify"));
    }
    // All or nothing: every disk is checked before any is changed.
    for id in &ids {
        let row = world.disks.existing(id)?;
        if bursting.is_some() {
            check_burst(&world.tasks, row)?;
        }
        if delete_with_instance.is_some() && row.multi_attach {
            return Err(ApiError::new(403, "DeleteWithInstance.Conflict"));
        }
    }
    for id in ids {
        world.disks.change(world.retention(), id, |row| {
            row.bursting = bursting.unwrap_or(row.bursting);
            row.delete_with_instance = delete_with_instance.unwrap_or(row.delete_with_instance);
            if let Some(name) = disk_name {
                name.clone_into(&mut row.name);
            }
            if let Some(text) = description {
                text.clone_into(&mut row.description);
            }
        });
    }
    Ok(ApiResponse::Done)
}

fn check_burst(tasks: &[TaskRow], row: &DiskRow) -> Result<(), ApiError> {
    let code = if task::is_changing(tasks, &row.id) {
        "BurstingEnabledForModifyingDiskUnsupported"
    } else if row.multi_attach {
        "BurstingEnabledForMultiAttachDiskUnsupported"
    } else if row.category != "cloud_auto" {
        "BurstingEnabledForDiskCategoryUnsupported"
    } else if row.size <= 3 {
        "InvalidBurstingEnabled.DiskSizeTooSmall"
    } else {
        return Ok(());
    };
    Err(ApiError::new(400, code))
}

pub(crate) fn modify_finished(world: &mut World, id: &str, success: bool) {
    let now = world.now;
    let Some(task) = world.tasks.iter_mut().find(|task| task.id == id) else {
        return;
    };
    task.stage = if success {
        TaskState::Finished
    } else {
        TaskState::Failed
    };
    task.ended = Some(now);
    let (disk, to) = (task.disk.clone(), task.to.clone());
    if success {
        put_spec(world, &disk, to, Some(now));
    }
}
