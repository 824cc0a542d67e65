//! Tag rules (ECS API, common name rules), `TagResources`, `UntagResources` and `ListTagResources`.

use std::collections::BTreeMap;

use super::page;
use super::params::Params;
use super::response::{ApiError, ApiResponse, ApiResult};
use super::world::World;

/// Maximum number of tags of a resource.
const MAX: usize = 20;
/// Maximum number of resources in one call.
const MAX_RESOURCES: usize = 50;
/// Maximum length of a key or value, in characters.
const MAX_LENGTH: usize = 128;

/// A row of `ListTagResources`.
#[derive(Debug, Clone)]
pub(crate) struct TaggedRow {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) key: String,
    pub(crate) value: String,
}

pub(crate) fn check(key: &str, value: &str) -> Result<(), ApiError> {
    let has_link = |text: &str| text.contains("http://") || text.contains("https://");
    let reserved = key.starts_with("aliyun") || key.starts_with("acs:");
    if key.chars().count() > MAX_LENGTH || reserved || has_link(key) {
        return Err(ApiError::new(400, "InvalidTagKey.Malformed"));
    }
    if value.chars().count() > MAX_LENGTH || has_link(value) {
        return Err(ApiError::new(400, "InvalidTagValue.Malformed"));
    }
    Ok(())
}

pub(crate) fn check_count(tags: &BTreeMap<String, String>) -> Result<(), ApiError> {
    if tags.len() > MAX {
        return Err(ApiError::new(403, "QuotaExceed.Tags"));
    }
    Ok(())
}

/// Whether a resource carries all of the wanted tags.
pub(crate) fn carries(tags: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted
        .iter()
        .all(|(key, value)| tags.get(key) == Some(value))
}

fn merged(
    tags: &BTreeMap<String, String>,
    more: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ApiError> {
    let mut all = tags.clone();
    all.extend(more.clone());
    check_count(&all).map(|()| all)
}

pub(crate) fn tag_resources(world: &mut World, params: &Params) -> ApiResult {
    params.required("RegionId")?;
    let kind = params.required("ResourceType")?.to_ascii_lowercase();
    let ids = params.list("ResourceId");
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
    let missing = || ApiError::new(404, "InvalidResourceId.NotFound");
    // All or nothing: every resource is checked before any is changed.
    let mut changes = Vec::new();
    for id in ids {
        let carried = match kind.as_str() {
            "disk" => world.disks.get(id).map(|row| &row.tags),
            "snapshot" => world.snapshots.get(id).map(|row| &row.tags),
            "instance" => world.instances.get(id).map(|row| &row.tags),
            _ => return Err(ApiError::new(404, "InvalidResourceType.NotFound")),
        };
        changes.push((id, merged(carried.ok_or_else(missing)?, &tags)?));
    }
    for (id, tags) in changes {
        put_tags(world, &kind, id, tags);
    }
    Ok(ApiResponse::Done)
}

fn put_tags(world: &mut World, kind: &str, id: &str, tags: BTreeMap<String, String>) {
    match kind {
        "disk" => world
            .disks
            .change(world.retention(), id, |row| row.tags = tags),
        "snapshot" => world
            .snapshots
            .change(world.retention(), id, |row| row.tags = tags),
        _ => {
            if let Some(row) = world.instances.get_mut(id) {
                row.tags = tags;
            }
        }
    }
}

pub(crate) fn untag_resources(world: &mut World, params: &Params) -> ApiResult {
    params.required("RegionId")?;
    let kind = params.required("ResourceType")?.to_ascii_lowercase();
    let ids = params.list("ResourceId");
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
    let missing = || ApiError::new(404, "InvalidResourceId.NotFound");
    let mut changes = Vec::new();
    for id in ids {
        let carried = match kind.as_str() {
            "disk" => world.disks.get(id).map(|row| &row.tags),
            "snapshot" => world.snapshots.get(id).map(|row| &row.tags),
            "instance" => world.instances.get(id).map(|row| &row.tags),
            _ => return Err(ApiError::new(404, "InvalidResourceType.NotFound")),
        };
        let mut left = carried.ok_or_else(missing)?.clone();
        left.retain(|key, _| !all && !keys.contains(&key.as_str()));
        changes.push((id, left));
    }
    for (id, tags) in changes {
        put_tags(world, &kind, id, tags);
    }
    Ok(ApiResponse::Done)
}

pub(crate) fn list_tag_resources(world: &mut World, params: &Params) -> ApiResult {
    params.required("RegionId")?;
    let kind = params.required("ResourceType")?.to_ascii_lowercase();
    let ids = params.list("ResourceId");
    let wanted = params.tags()?;
    if ids.len() > MAX_RESOURCES {
        return Err(ApiError::new(400, "NumberExceed.ResourceIds"));
    }
    let (kind, all): (_, Vec<(&String, &BTreeMap<String, String>)>) = match kind.as_str() {
        "disk" => {
            let rows = world
                .disks
                .rows()
                .keys()
                .filter_map(|id| world.disks.get(id));
            ("disk", rows.map(|row| (&row.id, &row.tags)).collect())
        }
        "snapshot" => {
            let rows = world.snapshots.rows().values();
            ("snapshot", rows.map(|row| (&row.id, &row.tags)).collect())
        }
        _ => return Err(ApiError::new(404, "InvalidResourceType.NotFound")),
    };
    let rows = all.into_iter().filter(|(id, tags)| {
        (ids.is_empty() || ids.contains(&id.as_str())) && carries(tags, &wanted)
    });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_tags_and_links_are_rejected() {
        assert_eq!(
            check("aliyun-x", "").unwrap_err().code,
            "InvalidTagKey.Malformed"
        );
        assert_eq!(
            check("acs:x", "").unwrap_err().code,
            "InvalidTagKey.Malformed"
        );
        assert_eq!(
            check("k", "http://x").unwrap_err().code,
            "InvalidTagValue.Malformed"
        );
        assert_eq!(
            check("k", &"v".repeat(129)).unwrap_err().code,
            "InvalidTagValue.Malformed"
        );
        assert_eq!(check("diskplugin.csi.example/name", "pvc-1"), Ok(()));
    }

    #[test]
    fn a_filter_requires_all_tags() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
            pairs.iter().map(own).collect()
        };
        let tags = of(&[("a", "1"), ("b", "2")]);
        assert!(carries(&tags, &of(&[("a", "1")])));
        assert!(!carries(&tags, &of(&[("a", "1"), ("b", "3")])));
    }
}
