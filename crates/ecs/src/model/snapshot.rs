//! Snapshots, as `DescribeSnapshots` returns them.

use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::id::{DiskId, SnapshotGroupId, SnapshotId};
use super::read::{self, Row};
use super::size::Gib;
use super::tag::Tags;
use super::word::words;

words! {
    /// The state of a snapshot (`Status` in the API).
    SnapshotStatus or Unknown:
    Progressing = "progressing",
    Accomplished = "accomplished",
    /// Permanent: the snapshot is never usable.
    Failed = "failed",
}

/// One row of `DescribeSnapshots`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Snapshot {
    #[serde(rename = "SnapshotId")]
    pub id: SnapshotId,
    #[serde(default, rename = "SnapshotName")]
    pub name: String,
    /// The source disk, which may have been deleted.
    #[serde(rename = "SourceDiskId")]
    pub source_disk: Option<DiskId>,
    /// The size of that disk at the point in time, and the minimum size of disks created from the snapshot.
    #[serde(rename = "SourceDiskSize", deserialize_with = "read::size")]
    pub source_size: Gib,
    pub status: SnapshotStatus,
    /// The point in time; none until it is captured.
    #[serde(default, rename = "CreationTime", deserialize_with = "read::time")]
    pub created: Option<Timestamp>,
    /// Whether disks can be created from it.
    #[serde(default)]
    pub available: bool,
    /// Whether it is encrypted at rest. Disks created from it must be encrypted too.
    #[serde(default)]
    pub encrypted: bool,
    #[serde(skip)]
    pub group: Option<SnapshotGroupId>,
    #[serde(default, deserialize_with = "read::tags")]
    pub tags: Tags,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "snapshot {} is {}", self.id, self.status)
    }
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
    let body = text.strip_prefix("Created_from_ssg-")?;
    let body = body.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    format!("ssg-{body}").parse().ok()
}
