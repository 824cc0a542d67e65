//! Snapshot groups on the wire.

use serde::Deserialize;

use super::params::Params;
use super::{List, Malformed, filled, page, time};
use crate::cloud::action::{CreateSnapshotGroup, DescribeSnapshotGroups, KeptMember, Page};
use crate::model::{GroupMember, SnapshotGroup, SnapshotGroupId, SnapshotStatus, Tags};

pub fn create(request: &CreateSnapshotGroup) -> Params {
    Params::default()
        .list("DiskId", &request.disks)
        .set("Name", &request.name)
        .set_some("ResourceGroupId", request.resource_group.as_ref())
        .set("ClientToken", &request.token)
        .tags(&request.tags)
}

pub fn describe(query: &DescribeSnapshotGroups) -> Params {
    Params::default()
        .set("MaxResults", 100)
        .set_some("NextToken", query.next.as_ref())
        .list("SnapshotGroupId", query.ids.iter().flatten())
        .tags(&query.tags)
}

pub fn delete(group: &SnapshotGroupId) -> Params {
    Params::default().set("SnapshotGroupId", group)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Created {
    pub snapshot_group_id: SnapshotGroupId,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Described {
    #[serde(default, deserialize_with = "filled")]
    next_token: Option<String>,
    snapshot_groups: List<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    snapshot_group_id: String,
    #[serde(default, deserialize_with = "filled")]
    name: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    status: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    creation_time: Option<String>,
    #[serde(default)]
    snapshots: Option<List<Member>>,
    #[serde(default)]
    tags: Option<TagRows>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Member {
    snapshot_id: String,
    #[serde(default, deserialize_with = "filled")]
    source_disk_id: Option<String>,
    #[serde(default)]
    available: Option<bool>,
}

/// Tags of a group, which are spelled `Key` and `Value`, unlike those of disks and snapshots.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TagRows {
    #[serde(default)]
    tag: Vec<TagRow>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TagRow {
    #[serde(alias = "TagKey")]
    key: String,
    #[serde(default, alias = "TagValue")]
    value: Option<String>,
}

impl Described {
    pub fn page(self) -> Page<SnapshotGroup> {
        let rows = self.snapshot_groups.0;
        page(rows, "SnapshotGroupId", self.next_token, Row::group)
    }
}

impl Row {
    fn group(self) -> Result<SnapshotGroup, Malformed> {
        let missing = || Malformed::Missing {
            id: self.snapshot_group_id.clone(),
            field: "Status",
        };
        let Ok(status): Result<SnapshotStatus, _> = self.status.ok_or_else(missing)?.parse();
        let members = self.snapshots.unwrap_or_default().0.into_iter();
        let tags = self.tags.unwrap_or_default().tag.into_iter();
        Ok(SnapshotGroup {
            id: self.snapshot_group_id.parse().map_err(Malformed::Id)?,
            name: self.name.unwrap_or_default(),
            status,
            created: time(self.creation_time.as_deref()),
            members: members.map(Member::member).collect::<Result<_, _>>()?,
            tags: tags
                .map(|row| (row.key, row.value.unwrap_or_default()))
                .collect::<Tags>(),
        })
    }
}

impl Member {
    fn member(self) -> Result<GroupMember, Malformed> {
        let source = self.source_disk_id.map(|id| id.parse());
        Ok(GroupMember {
            snapshot: self.snapshot_id.parse().map_err(Malformed::Id)?,
            source: source.transpose().map_err(Malformed::Id)?,
            available: self.available.unwrap_or_default(),
        })
    }
}

/// The answer to `DeleteSnapshotGroup`: a success, even when it did not delete everything.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Deleted {
    #[serde(default)]
    operation_progress_set: Option<List<Progress>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Progress {
    #[serde(default, deserialize_with = "filled")]
    operation_status: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    error_code: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    error_msg: Option<String>,
    #[serde(default)]
    related_item_set: Option<List<Item>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Item {
    #[serde(default, deserialize_with = "filled")]
    value: Option<String>,
}

impl Deleted {
    /// The snapshots that had to stay: each entry that has a code, or that is no success.
    pub fn kept(self) -> Vec<KeptMember> {
        let entries = self.operation_progress_set.unwrap_or_default();
        let kept = entries.0.into_iter().filter_map(|entry| {
            let items = entry.related_item_set.unwrap_or_default().0;
            let mut ids = items.into_iter().filter_map(|item| item.value);
            let status = entry.operation_status;
            let failed = status.filter(|status| !status.eq_ignore_ascii_case("Success"));
            Some(KeptMember {
                snapshot: ids.find(|id| id.starts_with("s-")).unwrap_or_default(),
                code: entry.error_code.or(failed)?,
                message: entry.error_msg.unwrap_or_default(),
            })
        });
        kept.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_read_with_its_members_and_its_tags_by_their_other_names() {
        let json = r#"{"NextToken":"","SnapshotGroups":{"SnapshotGroup":[{
            "SnapshotGroupId":"ssg-1","Name":"n","Status":"accomplished",
            "CreationTime":"2021-03-23T10:58:48Z","Tags":{"Tag":[{"Key":"k","Value":"v"}]},
            "Snapshots":{"Snapshot":[{"SnapshotId":"s-1","SourceDiskId":"d-1","Available":true,
            "Progress":"100%"}]}}]}}"#;
        let page = serde_json::from_str::<Described>(json).unwrap().page();
        let group = &page.rows[0];
        assert_eq!(group.tags["k"], "v");
        assert_eq!(group.status, SnapshotStatus::Accomplished);
        assert!(group.members[0].available);
        assert_eq!(group.members[0].source, Some("d-1".parse().unwrap()));
    }

    #[test]
    fn what_a_deletion_left_is_in_its_success() {
        let json = r#"{"RequestId":"R","OperationProgressSet":{"OperationProgress":[
            {"OperationStatus":"Failed","ErrorCode":"SnapshotCreatedImage","ErrorMsg":"used",
             "RelatedItemSet":{"RelatedItem":[{"Name":"SnapshotId","Value":"s-2"}]}},
            {"OperationStatus":"Failed","ErrorCode":"",
             "RelatedItemSet":{"RelatedItem":[{"Name":"SnapshotId","Value":"s-3"}]}},
            {"OperationStatus":"Success","ErrorCode":"","RelatedItemSet":null}]}}"#;
        let kept = serde_json::from_str::<Deleted>(json).unwrap().kept();
        assert_eq!(kept.len(), 2);
        // It failed, though nothing says why.
        assert_eq!(
            (kept[1].snapshot.as_str(), kept[1].code.as_str()),
            ("s-3", "Failed")
        );
        assert_eq!(
            (kept[0].snapshot.as_str(), kept[0].code.as_str()),
            ("s-2", "SnapshotCreatedImage")
        );
        let all = serde_json::from_str::<Deleted>(r#"{"RequestId":"R"}"#).unwrap();
        assert_eq!(all.kept(), []);
    }
}
