//! Indexes that lag together: a new resource is missing from every list, and every action on it fails as if it did not
//! exist.

use jiff::Timestamp;

use super::api_error::ApiError;
use super::call::ApiCall;
use super::distribution::until;
use super::response::{ApiResponse, ApiResult};
use super::world::World;

/// Records when a call created a resource.
pub(super) fn record_created(world: &mut World, reply: &ApiResult) {
    let (Ok(ApiResponse::Disk(id) | ApiResponse::Snapshot(id) | ApiResponse::Group(id)), false) =
        (reply, world.tokens.repeated)
    else {
        return;
    };
    if !world.config.rules.hidden.is_zero() {
        world.created_at.insert(id.clone(), world.now);
    }
}

fn is_hidden(world: &World, id: &str) -> bool {
    let created: Option<&Timestamp> = world.created_at.get(id);
    created.is_some_and(|created| until(*created, world.now) < world.config.rules.hidden)
}

/// The error of an action on a hidden resource.
pub(super) fn not_found(world: &World, call: &ApiCall) -> Option<ApiError> {
    if call.action.is_list() {
        return None;
    }
    let codes = [
        ("DiskId", "InvalidDiskId.NotFound"),
        ("SnapshotId", "InvalidSnapshotId.NotFound"),
        ("SnapshotGroupId", "InvalidSnapshotGroupId.NotFound"),
        ("ResourceId.1", "InvalidResourceId.NotFound"),
    ];
    let named = codes.into_iter().find_map(|(name, code)| {
        let id = call.params.get(name)?;
        is_hidden(world, id).then_some(code)
    });
    named.map(|code| ApiError::new(404, code))
}

/// The response without hidden resources.
pub(super) fn filter(world: &World, reply: ApiResult) -> ApiResult {
    reply.map(|mut response| {
        match &mut response {
            ApiResponse::Disks(list) => list.rows.retain(|row| !is_hidden(world, &row.id)),
            ApiResponse::Snapshots(list) => list.rows.retain(|row| !is_hidden(world, &row.id)),
            ApiResponse::Groups(list) => list.rows.retain(|view| !is_hidden(world, &view.row.id)),
            _ => {}
        }
        response
    })
}
