//! Tags of resources on the wire.

use serde::Deserialize;

use super::params::Params;
use super::{List, filled};
use crate::cloud::action::{ListTagResources, Page, TagTarget};

/// What to tag or untag.
pub fn targets(targets: &TagTarget) -> Params {
    let params = Params::default();
    match targets {
        TagTarget::Disks(ids) => params.set("ResourceType", "disk").list("ResourceId", ids),
        TagTarget::Snapshots(ids) => params
            .set("ResourceType", "snapshot")
            .list("ResourceId", ids),
    }
}

pub fn list(query: &ListTagResources) -> Params {
    Params::default()
        .set("ResourceType", query.kind.as_str())
        .set_some("NextToken", query.next.as_ref())
        .tags(&query.tags)
}

/// The answer to `ListTagResources`: one row for each resource and tag.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Listed {
    #[serde(default, deserialize_with = "filled")]
    next_token: Option<String>,
    tag_resources: List<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    resource_id: String,
}

impl Listed {
    pub fn page(self) -> Page<String> {
        let mut ids: Vec<String> = Vec::new();
        for row in self.tag_resources.0 {
            if !ids.contains(&row.resource_id) {
                ids.push(row.resource_id);
            }
        }
        Page::new(ids, self.next_token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_with_several_tags_is_told_once() {
        let json = r#"{"NextToken":"","TagResources":{"TagResource":[
            {"ResourceId":"d-1","ResourceType":"disk","TagKey":"a","TagValue":"1"},
            {"ResourceId":"d-1","ResourceType":"disk","TagKey":"b","TagValue":"2"},
            {"ResourceId":"d-2","ResourceType":"disk","TagKey":"a","TagValue":"1"}]}}"#;
        let page = serde_json::from_str::<Listed>(json).unwrap().page();
        assert_eq!(
            (page.rows, page.next),
            (vec!["d-1".to_owned(), "d-2".to_owned()], None)
        );
    }
}
