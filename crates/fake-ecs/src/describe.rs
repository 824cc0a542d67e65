//! List actions: disks and snapshots as of the replica's time, instances and instance types.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::api_error::ApiError;
use super::config::Stale;
use super::distribution::before;
use super::instance::InstanceRow;
use super::instance_changes;
use super::instance_type::{InstanceTypeSpec, KNOWN};
use super::page;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::rng::Rng;
use super::tag::carries;
use super::world::World;

/// The time whose state a read returns; none for an up-to-date read.
pub(super) fn replica_time(stale: &Stale, rng: &mut Rng, now: Timestamp) -> Option<Timestamp> {
    if stale.lag.is_zero() {
        return None;
    }
    if let Some(percent) = stale.percent
        && !rng.percent(percent)
    {
        return None;
    }
    let lag = if stale.jumping {
        stale.lag.draw(rng)
    } else {
        stale.lag.max()
    };
    Some(before(now, lag))
}

/// The time of the tag index, where it is older than the rows.
fn index_time(world: &World, wanted: &BTreeMap<String, String>) -> Option<Timestamp> {
    let lag = world.config.stale.tags;
    (!wanted.is_empty() && !lag.is_zero()).then(|| before(world.now, lag))
}

/// Whether the tag index finds a row that carried `old` at the time of the index; none if it did not exist then.
fn finds(
    old: Option<Option<&BTreeMap<String, String>>>,
    current: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
) -> bool {
    old.unwrap_or(Some(current)).is_some_and(|tags| carries(tags, wanted))
}

pub(super) fn check_region(region: &str, params: &Params) -> Result<(), ApiError> {
    match params.get("RegionId") {
        None => Err(ApiError::new(400, "MissingParamter.RegionId")),
        Some(named) if named == region => Ok(()),
        Some(_) => Err(ApiError::new(400, "InvalidRegion.NotFound")),
    }
}

pub(crate) fn describe_disks(world: &mut World, params: &Params) -> ApiResult {
    check_region(&world.region, params)?;
    let malformed = ApiError::new(403, "InvalidDiskIds.Malformed");
    let ids = params.ids("DiskIds", malformed)?;
    let tags = params.tags()?;
    if let Some(zone) = params.get("ZoneId")
        && !world.zones.iter().any(|known| known == zone)
    {
        return Err(ApiError::new(400, "InvalidZoneId.NotFound"));
    }
    if params.flag("DryRun")? {
        return Err(ApiError::dry_run());
    }
    let time = replica_time(&world.config.stale, &mut world.rng, world.now);
    let indexed = index_time(world, &tags);
    let bounds = page::bounds(world, params, 10..=500)?;
    // Without a lag there is no history to merge, and the walk can start at the cursor.
    let ids: Box<dyn Iterator<Item = &String>> = match (&ids, time) {
        (Some(ids), _) => Box::new(ids.iter()),
        (None, None) => Box::new(bounds.ids_after_cursor(world.disks.rows())),
        (None, Some(_)) => {
            let rows = world.disks.rows().keys();
            let all: BTreeSet<&String> = rows.chain(world.disks.history.ids()).collect();
            Box::new(all.into_iter())
        }
    };
    let ids = ids.filter(|id| bounds.is_after_cursor(id));
    let is = |name: &str, value: &str| params.get(name).is_none_or(|want| want == value);
    let rows = ids.filter_map(|id| {
        let row = world.disks.as_of(id, time, world.config.stale.torn)?;
        let old = indexed.and_then(|time| world.disks.history.at(id, time));
        let old = old.map(|row| row.map(|row| &row.tags));
        let instance = params.get("InstanceId");
        let matches = finds(old, &row.tags, &tags)
            && instance.is_none_or(|instance| row.shown().any(|a| a.instance == instance))
            && is("ZoneId", &row.zone)
            && is("Category", &row.category)
            && is("DiskName", &row.name)
            && is("SnapshotId", row.snapshot.as_deref().unwrap_or_default())
            && matches!(params.get("DiskType"), None | Some("all" | "data"))
            && params
                .get("Status")
                .is_none_or(|want| want == "All" || want == row.status());
        matches.then(|| {
            let mut row = row.into_owned();
            let injected = world.config.disk_health.get(id);
            row.shown_lock = injected.and_then(|injected| injected.lock.clone());
            row.unreadable = injected.is_some_and(|injected| injected.unreadable);
            (id.clone(), row)
        })
    });
    let rows = rows.take(bounds.limit).collect();
    page::page(world, params, 10..=500, rows).map(ApiResponse::Disks)
}

pub(crate) fn describe_snapshots(world: &mut World, params: &Params) -> ApiResult {
    check_region(&world.region, params)?;
    let malformed = ApiError::new(403, "InvalidSnapshotIds.Malformed");
    let ids = params.ids("SnapshotIds", malformed)?;
    let tags = params.tags()?;
    let status = params.get("Status").unwrap_or("all");
    if !matches!(status, "all" | "progressing" | "accomplished" | "failed") {
        return Err(ApiError::new(404, "InvalidStatus.NotFound"));
    }
    let time = replica_time(&world.config.stale, &mut world.rng, world.now);
    let indexed = index_time(world, &tags);
    let ids = match ids {
        Some(ids) => ids,
        None => world.snapshots.ids_as_of(time),
    };
    let rows = ids.into_iter().filter_map(|id| {
        let row = world.snapshots.as_of(&id, time)?;
        let old = indexed.and_then(|time| world.snapshots.history.at(&id, time));
        let old = old.map(|row| row.map(|row| &row.tags));
        let disk = params.get("DiskId");
        let name = params.get("SnapshotName");
        let matches = finds(old, &row.tags, &tags)
            && disk.is_none_or(|disk| row.disk == disk)
            && name.is_none_or(|name| row.name == name)
            && (status == "all" || status == row.status());
        matches.then(|| (id, row.clone()))
    });
    let rows = rows.collect();
    page::page(world, params, 10..=100, rows).map(ApiResponse::Snapshots)
}

pub(crate) fn describe_instances(world: &mut World, params: &Params) -> ApiResult {
    params.required("RegionId")?;
    let malformed = ApiError::new(403, "InvalidInstanceIds.Malformed");
    let ids = params.ids("InstanceIds", malformed)?;
    let tags = params.tags()?;
    let is = |name: &str, value: &str| params.get(name).is_none_or(|want| want == value);
    let rows = world.instances.values().filter(|row| {
        ids.as_ref().is_none_or(|ids| ids.contains(&row.id))
            && carries(&row.tags, &tags)
            && is("ZoneId", &row.zone)
            && is("Status", &format!("{:?}", row.power))
    });
    let shown = |row: &InstanceRow| (row.id.clone(), instance_changes::described(world, row));
    let rows = rows.map(shown).collect();
    page::page(world, params, 10..=100, rows).map(ApiResponse::Instances)
}

pub(crate) fn describe_instance_types(world: &mut World, params: &Params) -> ApiResult {
    let names = params.list("InstanceTypes");
    if names.len() > 10 {
        return Err(ApiError::invalid("InstanceTypes"));
    }
    let names = if names.is_empty() { KNOWN.to_vec() } else { names };
    let types = names.into_iter().map(|name| {
        let mut machine = InstanceTypeSpec::named(name);
        if let Some(quantity) = world.config.rules.disk_quantity {
            machine.disk_quantity = quantity;
        }
        machine
    });
    Ok(ApiResponse::Types(types.collect()))
}

pub(crate) fn describe_regions(world: &World) -> ApiResult {
    Ok(ApiResponse::Regions(vec![world.region.clone()]))
}
