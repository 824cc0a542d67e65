//! What a report contains.

use jiff::Timestamp;
use serde::Serialize;

use crate::model::{DiskId, Gib, InstanceId, SnapshotId, ZoneId};

/// A disk or snapshot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceId {
    Disk(DiskId),
    Snapshot(SnapshotId),
}

impl ResourceId {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Disk(id) => id.as_str(),
            Self::Snapshot(id) => id.as_str(),
        }
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let parsed = match text.starts_with("s-") {
            true => text.parse().map(Self::Snapshot),
            false => text.parse().map(Self::Disk),
        };
        parsed.map_err(|_| {
            format!("{text:?} is neither the ID of a disk nor that of a snapshot; allowed: d-… or s-…, letters and digits after -")
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    #[default]
    Disk,
    Snapshot,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    #[default]
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
    /// It was taken before its volume was deleted, and the cloud deletes it after its retention.
    BeforeDeletion,
}

/// A row of the report. Unknown values are none.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub class: Class,
    pub kind: Kind,
    /// The ID, or the invalid handle of the object.
    pub id: String,
    /// The PersistentVolume or content, from Kubernetes or else from the tags.
    pub object: Option<String>,
    /// `namespace/name` of the claim or VolumeSnapshot.
    pub claim: Option<String>,
    pub created_at: Option<Timestamp>,
    pub age_seconds: Option<u64>,
    /// Of a snapshot, the size of its disk.
    #[serde(rename = "sizeGiB")]
    pub size: Option<Gib>,
    pub category: Option<String>,
    /// The level of the category, such as `PL1`.
    pub performance_level: Option<String>,
    pub zone: Option<ZoneId>,
    pub instances: Vec<InstanceId>,
    /// What the other columns do not say.
    pub detail: Option<String>,
}

impl Finding {
    pub(super) fn new(class: Class, kind: Kind, id: &str) -> Self {
        Self {
            class,
            kind,
            id: id.to_owned(),
            ..Self::default()
        }
    }
}

/// The JSON form is described in `docs/guides/orphans.md`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub cluster_id: String,
    /// When the cloud was listed.
    pub listed_at: Timestamp,
    #[serde(rename = "items")]
    pub findings: Vec<Finding>,
    /// Number of resources without a reference that are younger than the minimum age.
    pub younger: usize,
    /// Limits of this report.
    pub notes: Vec<String>,
    /// With `--delete`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<Vec<Deletion>>,
}

/// What happened to a named resource.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Deletion {
    pub id: String,
    pub result: DeletionResult,
    /// Why it was refused, or the error with its causes.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum DeletionResult {
    Deleted,
    Refused,
    Failed,
}
