//! `CreateSnapshotGroup`: snapshots of several disks at one point in time.

use std::collections::BTreeSet;

use super::action::Action;
use super::api_error::ApiError;
use super::client_token;
use super::create_snapshot;
use super::group::GroupRow;
use super::name;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::size;
use super::snapshot::SnapshotRow;
use super::tag;
use super::world::World;

const MAX_DISKS: usize = 16;

/// Maximum total size of the disks.
const MAX_GIB: u64 = 32 * 1024;

pub(crate) fn create_snapshot_group(world: &mut World, params: &Params, fails_later: bool) -> ApiResult {
    if params.required("RegionId")? != world.region {
        return Err(ApiError::new(404, "InvalidRegionId.NotFound"));
    }
    client_token::once(world, Action::CreateSnapshotGroup, params, |world| {
        create_group_once(world, params, fails_later)
    })
}

fn create_group_once(world: &mut World, params: &Params, fails_later: bool) -> ApiResult {
    let group_name = params.get("Name").unwrap_or_default();
    name::check(group_name, "InvalidSnapshotName.Malformed")?;
    let tags = params.tags()?;
    tag::check_count(&tags)?;
    let disks = disks_of_group(world, params)?;
    check_group(world, &disks)?;
    let group = format!("ssg-{}", world.rng.body());
    let row = GroupRow {
        id: group.clone(),
        name: group_name.to_owned(),
        description: params.get("Description").unwrap_or_default().to_owned(),
        instance: params.get("InstanceId").map(str::to_owned),
        resource_group: params.get("ResourceGroupId").map(str::to_owned),
        tags,
        created: world.now,
    };
    world.groups.insert(world.retention(), group.clone(), row);
    // One point in time for all of them.
    let delays = create_snapshot::snapshot_delays(&world.config.delays, &mut world.rng);
    for disk in disks {
        let Some(source) = world.disks.get(&disk).cloned() else {
            continue;
        };
        let description = format!("Created_from_{group}");
        let row = SnapshotRow {
            name: format!("{description}_{disk}"),
            description,
            group: Some(group.clone()),
            ..SnapshotRow::default()
        };
        create_snapshot::put_snapshot(world, source, delays, fails_later, row);
    }
    Ok(ApiResponse::Group(group))
}

fn disks_of_group(world: &World, params: &Params) -> Result<BTreeSet<String>, ApiError> {
    let own = |ids: Vec<&str>| -> BTreeSet<String> { ids.into_iter().map(str::to_owned).collect() };
    let named = own(params.list("DiskId"));
    let excluded = own(params.list("ExcludeDiskId"));
    if !named.is_empty() && !excluded.is_empty() {
        return Err(ApiError::new(400, "InvalidParam.ExcludeDiskIdsAndDiskIds.Conflict"));
    }
    if !named.is_empty() {
        return Ok(named);
    }
    let Some(instance) = params.get("InstanceId") else {
        return Err(ApiError::new(400, "MissingParamter.InstanceId"));
    };
    if !world.instances.contains_key(instance) {
        return Err(ApiError::new(404, "InvalidInstanceId.NotFound"));
    }
    let held: BTreeSet<String> = world.disks.ids_on(instance).cloned().collect();
    let disks: BTreeSet<String> = held.difference(&excluded).cloned().collect();
    if disks.is_empty() {
        return Err(ApiError::new(403, "InvalidInstance.NoDisk"));
    }
    Ok(disks)
}

fn check_group(world: &mut World, disks: &BTreeSet<String>) -> Result<(), ApiError> {
    if disks.len() > MAX_DISKS {
        return Err(ApiError::new(403, "NumberExceed.TooManyDisks"));
    }
    let (mut zones, mut gib) = (BTreeSet::new(), 0);
    for disk in disks {
        let row = world.disks.existing(disk)?;
        if row.multi_attach {
            return Err(ApiError::new(403, "InvalidOperation.MultiAttachDisk"));
        }
        if !size::is_essd(&row.category) {
            return Err(ApiError::new(403, "InvalidDisk.DiskCategoryInconsistent"));
        }
        zones.insert(row.zone.clone());
        gib += u64::from(row.size);
    }
    if zones.len() > 1 {
        return Err(ApiError::new(400, "InvalidDiskIds.NotInSameZone"));
    }
    if gib > MAX_GIB {
        return Err(ApiError::new(403, "CapacityExceed.TooManyDisks"));
    }
    disks
        .iter()
        .try_for_each(|disk| create_snapshot::check_snapshot_source(world, disk))
}
