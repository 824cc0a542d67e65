//! `TagResources`, `UntagResources` and `ListTagResources`.

use std::collections::BTreeMap;

use super::api_error::ApiError;
use super::page;
use super::params::Params;
use super::response::{ApiResponse, ApiResult};
use super::tag::{MAX, TaggedRow, carries, check_count};
use super::world::World;

/// Maximum number of resources in one call.
const MAX_RESOURCES: usize = 50;

fn merged(
    tags: &BTreeMap<String, String>,
    more: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let mut all = tags.clone();
    all.extend(more.clone());
    check_count(&all).map(|()| all)
}

fn tags_of<'a>(world: &'a World, kind: &str, id: &str) -> Result<&'a BTreeMap<String, String>, ApiError> {
    let tags = match kind {
        "disk" => world.disks.get(id).map(|row| &row.tags),
        "snapshot" => world.snapshots.get(id).map(|row| &row.tags),
        "instance" => world.instances.get(id).map(|row| &row.tags),
        _ => return Err(ApiError::new(404, "InvalidResourceType.NotFound")),
    };
    tags.ok_or_else(|| ApiError::new(404, "InvalidResourceId.NotFound"))
}

/// The type and the IDs of the resources of a request.
fn resources(params: &Params) -> Result<(String, Vec<&str>), ApiError> {
    params.required("RegionId")?;
    let kind = params.required("ResourceType")?.to_ascii_lowercase();
    Ok((kind, params.list("ResourceId")))
}

pub(crate) fn tag_resources(world: &mut World, params: &Params) -> ApiResult {
    let (kind, ids) = resources(params)?;
    let tags = params.tags()?;
    if ids.is_empty() {
        return Err(ApiError::new(404, "MissingParameter.ResourceIds"));
    }
    if tags.is_empty() {
        return Err(ApiError::new(404, "MissingParameter.Tags"));
    }
    if ids.len() > MAX_RESOURCES {
        return Err(ApiError::new(400, "NumberExceed.ResourceIds"));
    }
    if tags.len() > MAX {
        return Err(ApiError::new(400, "NumberExceed.Tags"));
    }
    // All or nothing: every resource is checked before any is changed.
    let mut changes = Vec::new();
    for id in ids {
        changes.push((id, merged(tags_of(world, &kind, id)?, &tags)?));
    }
    for (id, tags) in changes {
        put_tags(world, &kind, id, tags);
    }
    Ok(ApiResponse::Done)
}

fn put_tags(world: &mut World, kind: &str, id: &str, tags: BTreeMap<String, String>) {
    match kind {
        "disk" => world.disks.change(world.retention(), id, |row| row.tags = tags),
        "snapshot" => world.snapshots.change(world.retention(), id, |row| row.tags = tags),
        _ => {
            if let Some(row) = world.instances.get_mut(id) {
                row.tags = tags;
            }
        }
    }
}

pub(crate) fn untag_resources(world: &mut World, params: &Params) -> ApiResult {
    let (kind, ids) = resources(params)?;
    let keys = params.list("TagKey");
    let all = params.flag("All")?;
    if ids.is_empty() {
        return Err(ApiError::new(404, "MissingParameter.ResourceIds"));
    }
    if ids.len() > MAX_RESOURCES {
        return Err(ApiError::new(400, "NumberExceed.ResourceIds"));
    }
    if keys.len() > MAX {
        return Err(ApiError::new(400, "NumberExceed.Tags"));
    }
    if all && !keys.is_empty() {
        return Err(ApiError::new(403, "Param.Conflict"));
    }
    if !all && keys.is_empty() {
        return Err(ApiError::new(404, "MissingParameter.Tags"));
    }
    let mut changes = Vec::new();
    for id in ids {
        let mut left = tags_of(world, &kind, id)?.clone();
        left.retain(|key, _| !all && !keys.contains(&key.as_str()));
        changes.push((id, left));
    }
    for (id, tags) in changes {
        put_tags(world, &kind, id, tags);
    }
    Ok(ApiResponse::Done)
}

pub(crate) fn list_tag_resources(world: &mut World, params: &Params) -> ApiResult {
    let (kind, ids) = resources(params)?;
    let wanted = params.tags()?;
    if ids.len() > MAX_RESOURCES {
        return Err(ApiError::new(400, "NumberExceed.ResourceIds"));
    }
    let (kind, all): (_, Vec<(&String, &BTreeMap<String, String>)>) = match kind.as_str() {
        "disk" => {
            let rows = world.disks.rows().keys().filter_map(|id| world.disks.get(id));
            ("disk", rows.map(|row| (&row.id, &row.tags)).collect())
        }
        "snapshot" => {
            let rows = world.snapshots.rows().values();
            ("snapshot", rows.map(|row| (&row.id, &row.tags)).collect())
        }
        _ => return Err(ApiError::new(404, "InvalidResourceType.NotFound")),
    };
    let rows = all
        .into_iter()
        .filter(|(id, tags)| (ids.is_empty() || ids.contains(&id.as_str())) && carries(tags, &wanted));
    let rows = rows.flat_map(|(id, tags)| {
        tags.iter().map(move |(key, value)| {
            let row = TaggedRow {
                id: id.clone(),
                kind,
                key: key.clone(),
                value: value.clone(),
            };
            // Keys contain no control characters, so this sorts by resource first.
            (format!("{id}\0{key}"), row)
        })
    });
    let rows = rows.collect();
    let params = params.clone().with("MaxResults", "50");
    page::page(world, &params, 50..=50, rows).map(ApiResponse::Tagged)
}
