//! A snapshot as the cloud describes it.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;

use super::id::{DiskId, SnapshotGroupId, SnapshotId};
use super::size::Gib;
use super::tag::Tags;

/// How far a snapshot is (`Status` in the API).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotStatus {
    Progressing,
    Accomplished,
    /// It will never be usable.
    Failed,
    /// A word that this driver does not know.
    Unknown(String),
}

impl SnapshotStatus {
    /// The word in the API.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Progressing => "progressing",
            Self::Accomplished => "accomplished",
            Self::Failed => "failed",
            Self::Unknown(word) => word,
        }
    }
}

impl FromStr for SnapshotStatus {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Infallible> {
        Ok(match word {
            "progressing" => Self::Progressing,
            "accomplished" => Self::Accomplished,
            "failed" => Self::Failed,
            other => Self::Unknown(other.to_owned()),
        })
    }
}

impl fmt::Display for SnapshotStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One row of `DescribeSnapshots`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub id: SnapshotId,
    /// The name it was created under.
    pub name: String,
    /// The disk it was taken of, which may be gone by now.
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
