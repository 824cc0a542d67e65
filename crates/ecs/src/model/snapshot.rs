//! Snapshots, as `DescribeSnapshots` returns them.

use std::fmt;

use jiff::Timestamp;

use super::id::{DiskId, SnapshotGroupId, SnapshotId};
use super::size::Gib;
use super::tag::Tags;
use super::word::words;

/// The state of a snapshot (`Status` in the API).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotStatus {
    Progressing,
    Accomplished,
    /// Permanent: the snapshot is never usable.
    Failed,
    Unknown(String),
}

words!(
    SnapshotStatus: Progressing = "progressing", Accomplished = "accomplished", Failed = "failed"
);

/// One row of `DescribeSnapshots`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub id: SnapshotId,
    pub name: String,
    /// The source disk, which may have been deleted.
    pub source_disk: Option<DiskId>,
    /// The size of that disk at the point in time, and the minimum size of disks created from the snapshot.
    pub source_size: Gib,
    pub status: SnapshotStatus,
    /// The point in time; none until it is captured.
    pub created: Option<Timestamp>,
    /// Whether disks can be created from it (`Available` in the API).
    pub available: bool,
    /// Whether it is encrypted at rest. Disks created from it must be encrypted too.
    pub encrypted: bool,
    /// The snapshot group that it belongs to.
    pub group: Option<SnapshotGroupId>,
    pub tags: Tags,
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "snapshot {} is {}", self.id, self.status)
    }
}
