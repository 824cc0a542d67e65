//! Snapshots on the wire.

use serde::Deserialize;

use super::disk::TagRows;
use super::params::Params;
use super::{List, Malformed, filled, number, page, time};
use crate::cloud::action::{CreateSnapshot, DescribeSnapshots, Page};
use crate::model::{Gib, Snapshot, SnapshotGroupId, SnapshotId, SnapshotStatus, Tags, tag};

pub fn create(request: &CreateSnapshot) -> Params {
    Params::default()
        .set("DiskId", &request.disk)
        .set("SnapshotName", &request.name)
        .set_some("RetentionDays", request.retention_days)
        .set_some("ResourceGroupId", request.resource_group.as_ref())
        .set("ClientToken", &request.token)
        .tags(&request.tags)
}

/// `DeleteSnapshot`. Forced: else a snapshot could not go before the disks made from it, which
/// need it only to be reset to it, and no CSI call does that.
pub fn delete(snapshot: &SnapshotId) -> Params {
    Params::default()
        .set("SnapshotId", snapshot)
        .set("Force", "true")
}

pub fn describe(query: &DescribeSnapshots) -> Params {
    let params = Params::default()
        .set("MaxResults", query.page_size.unwrap_or(100))
        .set_some("NextToken", query.next.as_ref())
        .set_some("DiskId", query.disk.as_ref())
        .tags(&query.tags);
    match &query.ids {
        Some(ids) => params.ids("SnapshotIds", ids),
        None => params,
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Created {
    pub snapshot_id: SnapshotId,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Described {
    #[serde(default, deserialize_with = "filled")]
    next_token: Option<String>,
    snapshots: List<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    snapshot_id: String,
    #[serde(default, deserialize_with = "filled")]
    snapshot_name: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    source_disk_id: Option<String>,
    #[serde(default, deserialize_with = "number")]
    source_disk_size: Option<u32>,
    #[serde(default, deserialize_with = "filled")]
    status: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    creation_time: Option<String>,
    #[serde(default)]
    available: Option<bool>,
    #[serde(default)]
    encrypted: Option<bool>,
    #[serde(default, deserialize_with = "filled")]
    description: Option<String>,
    #[serde(default)]
    tags: Option<TagRows>,
}

impl Described {
    pub fn page(self) -> Page<Snapshot> {
        page(
            self.snapshots.0,
            "SnapshotId",
            self.next_token,
            Row::snapshot,
        )
    }
}

impl Row {
    fn snapshot(self) -> Result<Snapshot, Malformed> {
        let missing = |field| Malformed::Missing {
            id: self.snapshot_id.clone(),
            field,
        };
        let Ok(status): Result<SnapshotStatus, _> =
            self.status.ok_or_else(|| missing("Status"))?.parse();
        let source_size = self
            .source_disk_size
            .map(Gib)
            .ok_or_else(|| missing("SourceDiskSize"))?;
        let name = self.snapshot_name.unwrap_or_default();
        let tags = Tags::from(self.tags.unwrap_or_default());
        let group = tags.get(tag::GROUP).and_then(|id| id.parse().ok());
        let described = self.description.as_deref().unwrap_or_default();
        let group = group.or_else(|| group_in(&name).or_else(|| group_in(described)));
        Ok(Snapshot {
            name,
            source_disk: self
                .source_disk_id
                .map(|id| id.parse().map_err(Malformed::Id))
                .transpose()?,
            source_size,
            available: self
                .available
                .unwrap_or(status == SnapshotStatus::Accomplished),
            status,
            created: time(self.creation_time.as_deref()),
            encrypted: self.encrypted.unwrap_or_default(),
            group,
            tags,
            id: self.snapshot_id.parse().map_err(Malformed::Id)?,
        })
    }
}

/// The group that the cloud writes into the name and the description of its snapshots:
/// `Created_from_ssg-…`. Our own tag is set a moment later than that.
fn group_in(text: &str) -> Option<SnapshotGroupId> {
    let id = text.strip_prefix("Created_from_")?;
    let body = id.strip_prefix("ssg-")?;
    let end = body.find(|c: char| !c.is_ascii_alphanumeric());
    let end = end.map_or(id.len(), |end| end + "ssg-".len());
    id.get(..end)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_before_its_cut_has_no_creation_time_and_its_size_may_be_text() {
        let json = r#"{"Snapshots":{"Snapshot":[{"SnapshotId":"s-1","SourceDiskId":"d-1",
            "SourceDiskSize":"40","Status":"progressing","CreationTime":"","Available":false}]}}"#;
        let page = serde_json::from_str::<Described>(json).unwrap().page();
        assert_eq!(page.rows[0].created, None);
        assert_eq!(page.rows[0].source_size, Gib(40));
        assert!(!page.rows[0].available);
    }

    #[test]
    fn a_snapshot_that_makes_no_sense_is_told_apart_and_hides_no_other() {
        let json = r#"{"Snapshots":{"Snapshot":[{"SnapshotId":"s-1","Status":"accomplished"},
            {"SnapshotId":"s-2","SourceDiskSize":40,"Status":"accomplished"}]}}"#;
        let page = serde_json::from_str::<Described>(json).unwrap().page();
        assert_eq!((page.rows.len(), page.rows[0].id.as_str()), (1, "s-2"));
        assert_eq!(page.unreadable[0].id.as_deref(), Some("s-1"));
    }

    #[test]
    fn a_member_of_a_group_is_known_by_our_tag_or_by_what_the_cloud_calls_it() {
        let row = |more: &str| {
            let json = format!(
                r#"{{"Snapshots":{{"Snapshot":[{{"SnapshotId":"s-1","SourceDiskSize":"40",
                "Status":"accomplished",{more}}}]}}}}"#
            );
            let mut page = serde_json::from_str::<Described>(&json).unwrap().page();
            page.rows.remove(0).group.map(|id| id.to_string())
        };
        let tag = r#""Tags":{"Tag":[{"TagKey":"diskplugin.csi.example/snapshot-group",
            "TagValue":"ssg-1"}]},"SnapshotName":"Created_from_ssg-2""#;
        assert_eq!(row(tag).as_deref(), Some("ssg-1"));
        let name = r#""SnapshotName":"Created_from_ssg-bp2x_d-1""#;
        assert_eq!(row(name).as_deref(), Some("ssg-bp2x"));
        let described = r#""SnapshotName":"x","Description":"Created_from_ssg-3""#;
        assert_eq!(row(described).as_deref(), Some("ssg-3"));
        assert_eq!(row(r#""SnapshotName":"Created_from_ssg-""#), None);
        assert_eq!(row(r#""SnapshotName":"by-hand""#), None);
    }
}
