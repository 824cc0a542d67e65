//! What a report contains.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;

use crate::model::{Category, ClusterId, DiskId, Gib, InstanceId, SnapshotId};

/// A disk or snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceId {
    Disk(DiskId),
    Snapshot(SnapshotId),
}

impl ResourceId {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Disk(_) => Kind::Disk,
            Self::Snapshot(_) => Kind::Snapshot,
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Self::Disk(id) => id.as_str(),
            Self::Snapshot(id) => id.as_str(),
        }
    }
}

impl FromStr for ResourceId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.starts_with("s-") {
            true => text.parse().map(Self::Snapshot),
            false => text.parse().map(Self::Disk),
        };
        parsed.map_err(|_| {
            format!("{text:?} is neither the ID of a disk nor that of a snapshot; allowed: d-… or s-…, letters and digits after -")
        })
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Disk,
    Snapshot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Nothing in Kubernetes refers to it.
    Leaked,
    /// Its PersistentVolume is Released or Failed, and retained.
    Released,
    /// It is attached to an instance without a VolumeAttachment.
    AttachedWithoutVa,
    /// It is deleted with the instance that it is attached to.
    DeletedWithInstance,
    /// An object of this driver refers to it, and it lacks the tag of this cluster.
    Foreign,
    /// An object of this driver refers to it, and it does not exist.
    Missing,
}

/// The name of a value, as in the JSON report.
fn fmt_value(value: &impl clap::ValueEnum, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let name = value.to_possible_value().expect("no value is hidden");
    f.write_str(name.get_name())
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_value(self, f)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_value(self, f)
    }
}

/// A row of the report.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    pub class: Class,
    pub kind: Kind,
    /// The ID, or the invalid handle of the object.
    pub id: String,
    /// The PersistentVolume or content, from Kubernetes or else from the tags.
    pub object: Option<String>,
    /// `namespace/name` of the claim or VolumeSnapshot.
    pub claim: Option<String>,
    pub created: Option<Timestamp>,
    /// Of a snapshot, the size of its disk.
    pub size: Option<Gib>,
    pub category: Option<Category>,
    /// The level of the category, such as `PL1`.
    pub performance_level: Option<String>,
    pub zone: Option<String>,
    pub instances: Vec<InstanceId>,
    /// What the other columns do not say.
    pub detail: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    pub cluster: ClusterId,
    /// When the cloud was listed.
    pub at: Timestamp,
    pub findings: Vec<Finding>,
    /// Resources without a reference that are younger than the minimum age.
    pub young: usize,
    /// Limits of this report.
    pub notes: Vec<String>,
}
