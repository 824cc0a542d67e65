//! Snapshot groups: snapshots of several disks at one point in time.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::Serialize;

use super::action::Action;
use super::client_token;
use super::describe;
use super::distribution::after;
use super::history::{History, Retention};
use super::name;
use super::page;
use super::params::Params;
use super::response::{ApiError, ApiResponse, ApiResult};
use super::size;
use super::snapshot;
use super::snapshot::{SnapshotRow, Snapshots, Stage};
use super::tag::{self, carries};
use super::world::World;

/// Maximum number of disks in a group.
const MAX_DISKS: usize = 16;
/// Maximum total size of the disks.
const MAX_GIB: u64 = 32 * 1024;
/// Maximum number of IDs in one describe call.
const MAX_IDS: usize = 10;

/// A snapshot group; the snapshots refer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct GroupRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) instance: Option<String>,
    pub(crate) resource_group: Option<String>,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) created: Timestamp,
}

/// A group as a list returns it, with the snapshots that the replica contains.
#[derive(Debug, Clone)]
pub(crate) struct GroupView {
    pub(crate) row: GroupRow,
    pub(crate) members: Vec<SnapshotRow>,
}

/// A snapshot that remains after the deletion of its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemainingMember {
    pub(crate) snapshot: String,
    pub(crate) error: ApiError,
}

impl GroupView {
    pub(crate) fn status(&self) -> &'static str {
        let any = |stage| self.members.iter().any(|row| row.stage == stage);
        if any(Stage::Failed) {
            "failed"
        } else if any(Stage::Progressing) || self.members.is_empty() {
            "progressing"
        } else {
            "accomplished"
        }
    }
}

/// All snapshot groups, with their earlier versions.
#[derive(Debug, Default)]
pub(crate) struct SnapshotGroups {
    rows: BTreeMap<String, GroupRow>,
    history: History<GroupRow>,
}

impl SnapshotGroups {
    pub(crate) fn rows(&self) -> &BTreeMap<String, GroupRow> {
        &self.rows
    }

    /// The IDs that a list at `time` can contain.
    fn ids_as_of(&self, time: Option<Timestamp>) -> BTreeSet<String> {
        let mut ids: BTreeSet<String> = self.rows.keys().cloned().collect();
        if time.is_some() {
            ids.extend(self.history.ids().cloned());
        }
        ids
    }

    /// The group as a read at `time` returns it.
    fn as_of(&self, id: &str, time: Option<Timestamp>) -> Option<&GroupRow> {
        match time.and_then(|time| self.history.at(id, time)) {
            Some(old) => old,
            None => self.rows.get(id),
        }
    }

    fn insert(&mut self, retention: Retention, row: GroupRow) {
        self.history.record(&row.id, None, Some(&row), retention);
        self.rows.insert(row.id.clone(), row);
    }

    fn remove(&mut self, retention: Retention, id: &str) {
        if let Some(old) = self.rows.remove(id) {
            self.history.record(id, Some(&old), None, retention);
        }
    }
}

pub(crate) fn create_snapshot_group(
    world: &mut World,
    params: &Params,
    fails_later: bool,
) -> ApiResult {
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
    world.groups.insert(world.retention(), row);
    // One point in time for all of them.
    let (cut, whole) = snapshot::snapshot_delays(&world.config.delays, &mut world.rng);
    for disk in disks {
        add_member(world, &group, &disk, cut, whole, fails_later);
    }
    Ok(ApiResponse::Group(group))
}

fn add_member(
    world: &mut World,
    group: &str,
    disk: &str,
    cut: std::time::Duration,
    whole: std::time::Duration,
    fails_later: bool,
) {
    let Some(source) = world.disks.get(disk).cloned() else {
        return;
    };
    let made = format!("Created_from_{group}");
    let row = SnapshotRow {
        id: format!("s-{}", world.rng.body()),
        name: format!("{made}_{disk}"),
        description: made,
        disk: disk.to_owned(),
        category: source.category,
        size: source.size,
        encrypted: source.encrypted,
        stage: Stage::Progressing,
        cut: None,
        begun: world.now,
        ends: after(world.now, whole),
        retention_days: None,
        resource_group: None,
        group: Some(group.to_owned()),
        tags: BTreeMap::new(),
    };
    snapshot::put_snapshot(world, cut, fails_later, row);
}

fn disks_of_group(world: &World, params: &Params) -> Result<BTreeSet<String>, ApiError> {
    let own = |ids: Vec<&str>| -> BTreeSet<String> { ids.into_iter().map(str::to_owned).collect() };
    let named = own(params.list("DiskId"));
    let excluded = own(params.list("ExcludeDiskId"));
    if !named.is_empty() && !excluded.is_empty() {
        return Err(ApiError::new(
            400,
            "InvalidParam.ExcludeDiskIdsAndDiskIds.Conflict",
        ));
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
        let missing = || ApiError::new(404, "InvalidDiskId.NotFound");
        let row = world.disks.get(disk).ok_or_else(missing)?;
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
        .try_for_each(|disk| snapshot::check_snapshot_source(world, disk))
}

pub(crate) fn delete_snapshot_group(world: &mut World, params: &Params) -> ApiResult {
    params.required("RegionId")?;
    let id = params.required("SnapshotGroupId")?;
    if !world.groups.rows.contains_key(id) {
        return if world.config.rules.missing_is_error {
            Err(ApiError::new(404, "InvalidSnapshotGroupId.NotFound"))
        } else {
            Ok(ApiResponse::GroupDeleted(Vec::new()))
        };
    }
    let mut remaining = Vec::new();
    for snapshot in world.snapshots.of_group(id) {
        match snapshot::held(&world.config.holds, &snapshot) {
            Some(error) => remaining.push(RemainingMember { snapshot, error }),
            None => snapshot::drop_snapshot(world, &snapshot),
        }
    }
    Ok(ApiResponse::GroupDeleted(remaining))
}

/// Deletes the group with its last snapshot.
pub(super) fn remove_if_empty(world: &mut World, group: Option<&str>) {
    let Some(group) = group else { return };
    if world.snapshots.of_group(group).is_empty() {
        world.groups.remove(world.retention(), group);
    }
}

pub(crate) fn describe_snapshot_groups(world: &mut World, params: &Params) -> ApiResult {
    describe::check_region(&world.region, params)?;
    let named = params.list("SnapshotGroupId");
    if named.len() > MAX_IDS {
        return Err(ApiError::new(400, "InvalidParameter.SnapshotGroupId"));
    }
    let tags = params.tags()?;
    let wanted = params.list("Status");
    let time = describe::replica_time(&world.config.stale, &mut world.rng, world.now);
    let mut ids: BTreeSet<String> = named.into_iter().map(str::to_owned).collect();
    if ids.is_empty() {
        ids = world.groups.ids_as_of(time);
    }
    let is = |name: &str, value: &str| params.get(name).is_none_or(|want| want == value);
    let rows = ids.into_iter().filter_map(|id| {
        let row = world.groups.as_of(&id, time)?;
        let members = members_as_of(&world.snapshots, &id, time);
        let view = GroupView {
            row: row.clone(),
            members,
        };
        let matches = carries(&row.tags, &tags)
            && is("Name", &row.name)
            && is("InstanceId", row.instance.as_deref().unwrap_or_default())
            && (wanted.is_empty() || wanted.contains(&view.status()));
        matches.then_some((id, view))
    });
    let rows = rows.collect();
    page::page(world, params, 1..=100, rows).map(ApiResponse::Groups)
}

fn members_as_of(snapshots: &Snapshots, group: &str, time: Option<Timestamp>) -> Vec<SnapshotRow> {
    let ids = snapshots.ids_as_of(time);
    let rows = ids.iter().filter_map(|id| snapshots.as_of(id, time));
    rows.filter(|row| row.group.as_deref() == Some(group))
        .cloned()
        .collect()
}
