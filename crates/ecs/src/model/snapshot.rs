//! A snapshot as the cloud describes it.

use std::fmt;

use jiff::Timestamp;

use super::id::{DiskId, SnapshotGroupId, SnapshotId};
use super::size::Gib;
use super::tag::Tags;
use super::word::words;

/// How far a snapshot is (`Status` in the API).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotStatus {
    Progressing,
    Accomplished,
    /// It will never be usable.
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
    /// The name it was created under.
    pub name: String,
    /// The source disk, which may have been deleted.
    pub source_disk: Option<DiskId>,
    /// The capacity of that disk at the cut: a disk from this snapshot is never smaller.
    pub source_size: Gib,
    /// How far it is.
    pub status: SnapshotStatus,
    /// When the point in time was cut; none until it is.
    pub created: Option<Timestamp>,
    /// Whether a disk can be made from it (`Available` in the API).
    pub available: bool,
    /// Whether it is encrypted at rest; disks made from it must be, too.
    pub encrypted: bool,
    /// The group that it was cut with.
    pub group: Option<SnapshotGroupId>,
    pub tags: Tags,
}

/// How far it is, for an operator.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "snapshot {} is {}", self.id, self.status)
    }
}
