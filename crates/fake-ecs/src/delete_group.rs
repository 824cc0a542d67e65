//! `DeleteSnapshotGroup`.

use super::api_error::ApiError;
use super::delete_snapshot;
use super::group::RemainingMember;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::world::World;

pub(crate) fn delete_snapshot_group(world: &mut World, params: &Params) -> ApiResult {
    params.required("RegionId")?;
    let id = params.required("SnapshotGroupId")?;
    if !world.groups.rows().contains_key(id) {
        return if world.config.rules.missing_is_error {
            Err(ApiError::new(404, "InvalidSnapshotGroupId.NotFound"))
        } else {
            Ok(ApiResponse::GroupDeleted(Vec::new()))
        };
    }
    let mut remaining = Vec::new();
    for snapshot in world.snapshots.of_group(id) {
        match delete_snapshot::held(&world.config.holds, &snapshot) {
            Some(error) => remaining.push(RemainingMember { snapshot, error }),
            None => delete_snapshot::drop_snapshot(world, &snapshot),
        }
    }
    Ok(ApiResponse::GroupDeleted(remaining))
}
