//! Tag rules (ECS API, common name rules) and `TagResources`.

use std::collections::BTreeMap;

use super::params::Params;
use super::reply::{Answer, Refusal, Reply};
use super::world::World;

/// Most tags that a resource carries.
const MOST: usize = 20;
/// Most resources of one `TagResources`.
const MOST_RESOURCES: usize = 50;
/// Longest key and value, in characters.
const LONGEST: usize = 128;

/// A tag of a resource, as `ListTagResources` shows it.
#[derive(Debug, Clone)]
pub(crate) struct TaggedRow {
    pub(crate) id: String,
    pub(crate) kind: &'static str,
    pub(crate) key: String,
    pub(crate) value: String,
}

pub(crate) fn check(key: &str, value: &str) -> Result<(), Refusal> {
    let has_link = |text: &str| text.contains("http://") || text.contains("https://");
    let reserved = key.starts_with("aliyun") || key.starts_with("acs:");
    if key.chars().count() > LONGEST || reserved || has_link(key) {
        return Err(Refusal::new(400, "InvalidTagKey.Malformed"));
    }
    if value.chars().count() > LONGEST || has_link(value) {
        return Err(Refusal::new(400, "InvalidTagValue.Malformed"));
    }
    Ok(())
}

pub(crate) fn check_count(tags: &BTreeMap<String, String>) -> Result<(), Refusal> {
    if tags.len() > MOST {
        return Err(Refusal::new(403, "QuotaExceed.Tags"));
    }
    Ok(())
}

/// Whether a resource carries all of these.
pub(crate) fn carries(tags: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> bool {
    wanted
        .iter()
        .all(|(key, value)| tags.get(key) == Some(value))
}

fn merged(
    tags: &BTreeMap<String, String>,
    more: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Refusal> {
    let mut all = tags.clone();
    all.extend(more.clone());
    check_count(&all).map(|()| all)
}

impl World {
    pub(crate) fn tag_resources(&mut self, params: &Params) -> Reply {
        params.required("RegionId")?;
        let kind = params.required("ResourceType")?.to_ascii_lowercase();
        let ids = params.list("ResourceId");
        let tags = params.tags()?;
        if ids.is_empty() {
            return Err(Refusal::new(404, "MissingParameter.ResourceIds"));
        }
        if tags.is_empty() {
            return Err(Refusal::new(404, "MissingParameter.Tags"));
        }
        if ids.len() > MOST_RESOURCES {
            return Err(Refusal::new(400, "NumberExceed.ResourceIds"));
        }
        if tags.len() > MOST {
            return Err(Refusal::new(400, "NumberExceed.Tags"));
        }
        let missing = || Refusal::new(404, "InvalidResourceId.NotFound");
        // All or nothing: what is wrong with one is found before any is changed.
        let mut changes = Vec::new();
        for id in ids {
            let carried = match kind.as_str() {
                "disk" => self.disk(id).map(|row| &row.tags),
                "snapshot" => self.snapshot(id).map(|row| &row.tags),
                "instance" => self.instance(id).map(|row| &row.tags),
                _ => return Err(Refusal::new(404, "InvalidResourceType.NotFound")),
            };
            changes.push((id, merged(carried.ok_or_else(missing)?, &tags)?));
        }
        for (id, tags) in changes {
            self.put_tags(&kind, id, tags);
        }
        Ok(Answer::Done)
    }

    fn put_tags(&mut self, kind: &str, id: &str, tags: BTreeMap<String, String>) {
        match kind {
            "disk" => self.change_disk(id, |row| row.tags = tags),
            "snapshot" => self.change_snapshot(id, |row| row.tags = tags),
            _ => self.change_instance(id, |row| row.tags = tags),
        }
    }

    pub(crate) fn untag_resources(&mut self, params: &Params) -> Reply {
        params.required("RegionId")?;
        let kind = params.required("ResourceType")?.to_ascii_lowercase();
        let ids = params.list("ResourceId");
        let keys = params.list("TagKey");
        let all = params.flag("All")?;
        if ids.is_empty() {
            return Err(Refusal::new(404, "MissingParameter.ResourceIds"));
        }
        if ids.len() > MOST_RESOURCES {
            return Err(Refusal::new(400, "NumberExceed.ResourceIds"));
        }
        if keys.len() > MOST {
            return Err(Refusal::new(400, "NumberExceed.Tags"));
        }
        if all && !keys.is_empty() {
            return Err(Refusal::new(403, "Param.Conflict"));
        }
        if !all && keys.is_empty() {
            return Err(Refusal::new(404, "MissingParameter.Tags"));
        }
        let missing = || Refusal::new(404, "InvalidResourceId.NotFound");
        let mut changes = Vec::new();
        for id in ids {
            let carried = match kind.as_str() {
                "disk" => self.disk(id).map(|row| &row.tags),
                "snapshot" => self.snapshot(id).map(|row| &row.tags),
                "instance" => self.instance(id).map(|row| &row.tags),
                _ => return Err(Refusal::new(404, "InvalidResourceType.NotFound")),
            };
            let mut left = carried.ok_or_else(missing)?.clone();
            left.retain(|key, _| !all && !keys.contains(&key.as_str()));
            changes.push((id, left));
        }
        for (id, tags) in changes {
            self.put_tags(&kind, id, tags);
        }
        Ok(Answer::Done)
    }

    pub(crate) fn list_tag_resources(&mut self, params: &Params) -> Reply {
        params.required("RegionId")?;
        let kind = params.required("ResourceType")?.to_ascii_lowercase();
        let ids = params.list("ResourceId");
        let wanted = params.tags()?;
        if ids.len() > MOST_RESOURCES {
            return Err(Refusal::new(400, "NumberExceed.ResourceIds"));
        }
        let (kind, all): (_, Vec<(&String, &BTreeMap<String, String>)>) = match kind.as_str() {
            "disk" => {
                let rows = self.disks.keys().filter_map(|id| self.disk(id));
                ("disk", rows.map(|row| (&row.id, &row.tags)).collect())
            }
            "snapshot" => {
                let rows = self.snapshots.values();
                ("snapshot", rows.map(|row| (&row.id, &row.tags)).collect())
            }
            _ => return Err(Refusal::new(404, "InvalidResourceType.NotFound")),
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
                // Keys hold no control characters, so that the order is by resource first.
                (format!("{id}\0{key}"), row)
            })
        });
        let rows = rows.collect();
        let params = params.clone().with("MaxResults", "50");
        self.page(&params, 50..=50, rows).map(Answer::Tagged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_and_linking_tags_are_refused() {
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
    fn wanted_tags_must_all_be_carried() {
        let of = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
            pairs.iter().map(own).collect()
        };
        let tags = of(&[("a", "1"), ("b", "2")]);
        assert!(carries(&tags, &of(&[("a", "1")])));
        assert!(!carries(&tags, &of(&[("a", "1"), ("b", "3")])));
    }
}
