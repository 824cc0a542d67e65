//! Parameters and rows of tags.

use serde::Deserialize;

use super::List;
use super::params::Params;
use crate::action::{TagResources, TagTarget, UntagResources};
use crate::model::Tags;

pub fn set(request: &TagResources) -> Params {
    targets(&request.targets).tags(&request.tags)
}

pub fn remove(request: &UntagResources) -> Params {
    targets(&request.targets).list("TagKey", &request.keys)
}

fn targets(targets: &TagTarget) -> Params {
    let kind = |kind| Params::default().set("ResourceType", kind);
    match targets {
        TagTarget::Disks(ids) => kind("disk").list("ResourceId", ids),
        TagTarget::Snapshots(ids) => kind("snapshot").list("ResourceId", ids),
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

    #[test]
    fn tags_are_parsed_in_both_spellings_and_without_values() {
        let json = r#"{"Tag":[{"TagKey":"a","TagValue":"1"},{"Key":"b","Value":"2"},{"TagKey":"c"}]}"#;
        let tags: Tags = serde_json::from_str::<List<TagRow>>(json).unwrap().into();
        let text: Vec<_> = tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(text, ["a=1", "b=2", "c="]);
    }
}
