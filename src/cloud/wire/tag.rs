//! Tags of resources on the wire.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::List;
use super::params::Params;
use crate::cloud::action::{
    ListTagResources, Page, TagKind, TagResources, TagTarget, UntagResources,
};
use crate::model::Tags;

pub fn set(request: &TagResources) -> Params {
    targets(&request.targets).tags(&request.tags)
}

pub fn remove(request: &UntagResources) -> Params {
    targets(&request.targets).list("TagKey", &request.keys)
}

fn targets(targets: &TagTarget) -> Params {
    let kind = |kind: TagKind| Params::default().set("ResourceType", kind.as_str());
    match targets {
        TagTarget::Disks(ids) => kind(TagKind::Disk).list("ResourceId", ids),
        TagTarget::Snapshots(ids) => kind(TagKind::Snapshot).list("ResourceId", ids),
    }
}

pub fn list(query: &ListTagResources) -> Params {
    Params::default()
        .set("ResourceType", query.kind.as_str())
        .set_some("NextToken", query.next.as_ref())
        .tags(&query.tags)
}

/// A row of `ListTagResources`: there is one for each resource and tag.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Row {
    resource_id: String,
}

/// The page with each ID once.
pub fn unique(mut page: Page<String>) -> Page<String> {
    let mut known = BTreeSet::new();
    page.rows.retain(|id| known.insert(id.clone()));
    page
}

impl super::Row for Row {
    type Model = String;
    const LIST: &'static str = "TagResources";
    const ID: &'static str = "ResourceId";

    fn into_model(self) -> String {
        self.resource_id
    }
}

/// A tag of a described resource. Disks and snapshots spell it `TagKey` and `TagValue`, groups `Key` and `Value`.
#[derive(Debug, Deserialize)]
pub(super) struct TagRow {
    #[serde(rename = "TagKey", alias = "Key")]
    key: String,
    #[serde(default, rename = "TagValue", alias = "Value")]
    value: String,
}

impl From<List<TagRow>> for Tags {
    fn from(rows: List<TagRow>) -> Self {
        let tags = rows.0.into_iter().map(|row| (row.key, row.value));
        tags.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::wire::{Described, read};

    #[test]
    fn a_resource_with_several_tags_is_reported_once() {
        let json = br#"{"NextToken":"","TagResources":{"TagResource":[
            {"ResourceId":"d-1","ResourceType":"disk","TagKey":"a","TagValue":"1"},
            {"ResourceId":"d-2","ResourceType":"disk","TagKey":"a","TagValue":"1"},
            {"ResourceId":"d-1","ResourceType":"disk","TagKey":"b","TagValue":"2"}]}}"#;
        let page = read::<Described<Row>>(json).unwrap().0;
        let page = unique(page);
        assert_eq!(page.rows, ["d-1", "d-2"]);
        assert_eq!(page.next, None);
    }

    #[test]
    fn tags_are_read_by_either_spelling_and_may_have_no_value() {
        let json =
            r#"{"Tag":[{"TagKey":"a","TagValue":"1"},{"Key":"b","Value":"2"},{"TagKey":"c"}]}"#;
        let tags: Tags = serde_json::from_str::<List<TagRow>>(json).unwrap().into();
        let text: Vec<_> = tags
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        assert_eq!(text, ["a=1", "b=2", "c="]);
    }
}
