//! Parameters and rows of snapshots.

use serde_json::Value;

use super::Row;
use super::params::Params;
use crate::action::{CreateSnapshot, DescribeSnapshots};
use crate::model::{Snapshot, SnapshotGroupId, SnapshotId, SnapshotStatus};

pub fn create(request: &CreateSnapshot) -> Params {
    Params::default()
        .set("DiskId", &request.disk)
        .set("SnapshotName", &request.name)
        .set_some("RetentionDays", request.retention_days)
        .set_some("ResourceGroupId", request.resource_group.as_ref())
        .set("ClientToken", &request.token)
        .tags(&request.tags)
}

/// `DeleteSnapshot` with `Force`: otherwise a snapshot cannot be deleted before the disks created from it, which need
/// it only for `ResetDisk`, which is not used here.
pub fn delete(snapshot: &SnapshotId) -> Params {
    Params::default().set("SnapshotId", snapshot).set("Force", "true")
}

pub fn describe(query: &DescribeSnapshots) -> Params {
    Params::page(query.page_size, query.next.as_ref())
        .set_some("DiskId", query.disk.as_ref())
        .tags(&query.tags)
        .ids("SnapshotIds", query.ids.as_deref())
}

impl Row for Snapshot {
    const LIST: &'static str = "Snapshots";
    const ID: &'static str = "SnapshotId";

    fn parse(row: Value) -> serde_json::Result<Self> {
        let has_availability = row.get("Available").is_some();
        let description = row.get("Description").and_then(Value::as_str).map(str::to_owned);
        let mut snapshot: Self = serde_json::from_value(row)?;
        snapshot.available |= !has_availability && snapshot.status == SnapshotStatus::Accomplished;
        let texts = [Some(&snapshot.name), description.as_ref()];
        snapshot.group = texts.into_iter().flatten().find_map(|text| group_in(text));
        Ok(snapshot)
    }
}

/// The group in the name and description that the cloud gives to its snapshots: `Created_from_ssg-…`.
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
    use crate::action::Page;
    use crate::model::Gib;
    use crate::wire::read;

    fn page(json: &str) -> Page<Snapshot> {
        read::<Page<Snapshot>>(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_snapshot_before_its_cut_has_no_creation_time_and_may_have_a_size_as_text() {
        let json = r#"{"Snapshots":{"Snapshot":[{"SnapshotId":"s-1","SourceDiskId":"d-1",
            "SourceDiskSize":"40","Status":"progressing","CreationTime":"","Available":false}]}}"#;
        let page = page(json);
        assert_eq!(page.rows[0].created, None);
        assert_eq!(page.rows[0].source_size, Gib(40));
        assert!(!page.rows[0].available);
    }

    #[test]
    fn a_malformed_snapshot_is_reported_and_does_not_affect_others() {
        let json = r#"{"Snapshots":{"Snapshot":[{"SnapshotId":"s-1","Status":"accomplished"},
            {"SnapshotId":"s-2","SourceDiskSize":40,"Status":"accomplished"}]}}"#;
        let page = page(json);
        assert_eq!((page.rows.len(), page.rows[0].id.as_str()), (1, "s-2"));
        assert_eq!(page.unreadable[0].id.as_deref(), Some("s-1"));
    }

    #[test]
    fn a_group_member_is_recognized_by_its_name_or_description() {
        let row = |more: &str| {
            let json = format!(
                r#"{{"Snapshots":{{"Snapshot":[{{"SnapshotId":"s-1","SourceDiskSize":"40",
                "Status":"accomplished",{more}}}]}}}}"#
            );
            let mut page = page(&json);
            page.rows.remove(0).group.map(|id| id.to_string())
        };
        let name = r#""SnapshotName":"Created_from_ssg-bp2x_d-1""#;
        assert_eq!(row(name).as_deref(), Some("ssg-bp2x"));
        let described = r#""SnapshotName":"x","Description":"Created_from_ssg-3""#;
        assert_eq!(row(described).as_deref(), Some("ssg-3"));
        assert_eq!(row(r#""SnapshotName":"Created_from_ssg-""#), None);
        assert_eq!(row(r#""SnapshotName":"manual""#), None);
    }
}
