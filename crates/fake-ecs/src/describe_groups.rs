//! `DescribeSnapshotGroups`.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::api_error::ApiError;
use super::describe;
use super::group::GroupView;
use super::page;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::snapshot::{SnapshotRow, Snapshots};
use super::tag::carries;
use super::world::World;

/// Maximum number of IDs in one describe call.
const MAX_IDS: usize = 10;

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
