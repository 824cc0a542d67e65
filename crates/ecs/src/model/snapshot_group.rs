//! Snapshot groups, as `DescribeSnapshotGroups` returns them.

use std::fmt;

use jiff::Timestamp;
use serde::Deserialize;

use super::id::{DiskId, SnapshotGroupId, SnapshotId};
use super::read::{self, Row};
use super::snapshot::SnapshotStatus;
use super::tag::Tags;

/// One row of `DescribeSnapshotGroups`: snapshots of several disks at one point in time.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SnapshotGroup {
    #[serde(rename = "SnapshotGroupId")]
    pub id: SnapshotGroupId,
    pub status: SnapshotStatus,
    /// Creation time of the group; the point in time of the snapshots is in their rows.
    #[serde(default, rename = "CreationTime", deserialize_with = "read::time")]
    pub created: Option<Timestamp>,
    /// Its snapshots. Can be empty shortly after the creation.
    #[serde(default, rename = "Snapshots", deserialize_with = "read::list")]
    pub members: Vec<GroupMember>,
    /// The tags of the group. Its members do not inherit them.
    #[serde(default, deserialize_with = "read::tags")]
    pub tags: Tags,
}

/// A snapshot of a group, as described in the group's row.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct GroupMember {
    #[serde(rename = "SnapshotId")]
    pub snapshot: SnapshotId,
    #[serde(rename = "SourceDiskId")]
    pub source: Option<DiskId>,
}

impl fmt::Display for SnapshotGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "snapshot group {} is {} with {} snapshots",
            self.id,
            self.status,
            self.members.len()
        )
    }
}

impl Row for SnapshotGroup {
    const LIST: &'static str = "SnapshotGroups";
    const ID: &'static str = "SnapshotGroupId";
}
