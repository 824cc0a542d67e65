//! Parameters and rows of snapshot groups.

use serde::Deserialize;

use super::Row;
use super::params::Params;
use crate::action::{CreateSnapshotGroup, DescribeSnapshotGroups, UndeletedSnapshot};
use crate::model::read::list;
use crate::model::{SnapshotGroup, SnapshotGroupId};

pub fn create(request: &CreateSnapshotGroup) -> Params {
    Params::default()
        .list("DiskId", &request.disks)
        .set("Name", &request.name)
        .set_some("ResourceGroupId", request.resource_group.as_ref())
        .set("ClientToken", &request.token)
        .tags(&request.tags)
}

pub fn describe(query: &DescribeSnapshotGroups) -> Params {
    Params::page(None, query.next.as_ref())
        .list("SnapshotGroupId", query.ids.iter().flatten())
        .tags(&query.tags)
}

pub fn delete(group: &SnapshotGroupId) -> Params {
    Params::default().set("SnapshotGroupId", group)
}

impl Row for SnapshotGroup {
    const LIST: &'static str = "SnapshotGroups";
    const ID: &'static str = "SnapshotGroupId";
}

/// The response of `DeleteSnapshotGroup`: a success, even if snapshots remain.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Deleted {
    #[serde(default, deserialize_with = "list")]
    operation_progress_set: Vec<Progress>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Progress {
    operation_status: Option<String>,
    error_code: Option<String>,
    #[serde(default)]
    error_msg: String,
    #[serde(default, deserialize_with = "list")]
    related_item_set: Vec<Item>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Item {
    value: Option<String>,
}

impl Deleted {
    /// The snapshots that were not deleted: each entry with a code or without success.
    pub fn remaining(self) -> Vec<UndeletedSnapshot> {
        let entries = self.operation_progress_set.into_iter();
        let remaining = entries.filter_map(|entry| {
            let items = entry.related_item_set.into_iter();
            let mut ids = items.filter_map(|item| item.value);
            let status = entry.operation_status;
            let failed = status.filter(|status| !status.eq_ignore_ascii_case("Success"));
            Some(UndeletedSnapshot {
                snapshot: ids.find(|id| id.starts_with("s-")).unwrap_or_default(),
                code: entry.error_code.or(failed)?,
                message: entry.error_msg,
            })
        });
        remaining.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Page;
    use crate::model::SnapshotStatus;
    use crate::wire::read;

    #[test]
    fn a_group_is_parsed_with_its_members_and_tags() {
        let json = r#"{"NextToken":"","SnapshotGroups":{"SnapshotGroup":[{
            "SnapshotGroupId":"ssg-1","Name":"n","Status":"accomplished",
            "CreationTime":"2021-03-23T10:58:48Z","Tags":{"Tag":[{"Key":"k","Value":"v"}]},
            "Snapshots":{"Snapshot":[{"SnapshotId":"s-1","SourceDiskId":"d-1","Available":true,
            "Progress":"100%"}]}}]}}"#;
        let page = read::<Page<SnapshotGroup>>(json.as_bytes()).unwrap();
        let group = &page.rows[0];
        assert_eq!(group.tags["k"], "v");
        assert_eq!(group.status, SnapshotStatus::Accomplished);
        assert_eq!(group.members[0].source, Some("d-1".parse().unwrap()));
    }

    #[test]
    fn a_successful_deletion_lists_the_remaining_snapshots() {
        let json = r#"{"RequestId":"R","OperationProgressSet":{"OperationProgress":[
            {"OperationStatus":"Failed","ErrorCode":"SnapshotCreatedImage","ErrorMsg":"used",
             "RelatedItemSet":{"RelatedItem":[{"Name":"SnapshotId","Value":"s-2"}]}},
            {"OperationStatus":"Failed","ErrorCode":"",
             "RelatedItemSet":{"RelatedItem":[{"Name":"SnapshotId","Value":"s-3"}]}},
            {"OperationStatus":"Success","ErrorCode":"","RelatedItemSet":null}]}}"#;
        let remaining = read::<Deleted>(json.as_bytes()).unwrap().remaining();
        assert_eq!(remaining.len(), 2);
        // Failed without a reason.
        assert_eq!(
            (remaining[1].snapshot.as_str(), remaining[1].code.as_str()),
            ("s-3", "Failed")
        );
        assert_eq!(
            (remaining[0].snapshot.as_str(), remaining[0].code.as_str()),
            ("s-2", "SnapshotCreatedImage")
        );
        let all = read::<Deleted>(br#"{"RequestId":"R"}"#).unwrap();
        assert_eq!(all.remaining(), []);
    }
}
