//! A group of snapshots as the cloud describes it.

use std::fmt;

use jiff::Timestamp;

use super::id::{DiskId, SnapshotGroupId, SnapshotId};
use super::snapshot::SnapshotStatus;
use super::tag::Tags;

/// One row of `DescribeSnapshotGroups`: snapshots of several disks, cut at one instant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotGroup {
    pub id: SnapshotGroupId,
    /// How far it is as a whole.
    pub status: SnapshotStatus,
    /// Creation time of the group; the point in time of the snapshots is in their rows.
    pub created: Option<Timestamp>,
    /// Its snapshots; may be empty for a moment after its creation.
    pub members: Vec<GroupMember>,
    /// Its own tags; those of its members are their own.
    pub tags: Tags,
}

/// A snapshot of a group, as described in the group's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupMember {
    pub snapshot: SnapshotId,
    /// The source disk.
    pub source: Option<DiskId>,
}

/// How far it is, for an operator.
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
