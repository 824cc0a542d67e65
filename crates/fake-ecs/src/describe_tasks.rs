//! `DescribeTasks`.

use super::api_error::ApiError;
use super::page;
use super::params::Params;
use super::response::{ApiResponse, ApiResult, Listing};
use super::task::TaskRow;
use super::world::World;

/// Maximum number of tasks in one call.
const MAX: usize = 100;

/// Newest first; drivers rely on it.
pub(crate) fn describe_tasks(world: &mut World, params: &Params) -> ApiResult {
    params.required("RegionId")?;
    let ids = params.get("TaskIds");
    let ids: Option<Vec<&str>> = ids.map(|ids| ids.split(',').map(str::trim).collect());
    let disks = params.list("ResourceIds");
    if ids.as_ref().is_some_and(|ids| ids.len() > MAX) || disks.len() > MAX {
        return Err(ApiError::new(400, "InvalidParameter"));
    }
    let status = params.get("TaskStatus");
    let known = matches!(params.get("TaskAction"), None | Some("ModifyDiskSpec"));
    let rows = world.tasks.iter().rev().filter(|row| {
        known
            && ids.as_ref().is_none_or(|ids| ids.contains(&row.id.as_str()))
            && (disks.is_empty() || disks.contains(&row.disk.as_str()))
            && status.is_none_or(|status| status == format!("{:?}", row.stage))
    });
    let rows: Vec<_> = rows.map(|row| (row.id.clone(), row.clone())).collect();
    let page: Listing<TaskRow> = page::page(world, params, 1..=100, rows)?;
    Ok(ApiResponse::Tasks(page))
}
