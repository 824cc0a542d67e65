//! The explanation of objects. Its JSON form is documented in `docs/reference/command-line.md`.

use serde::Serialize;

use crate::model::{Category, Gib, Performance, PerformanceLevel, ZoneId};

/// The explanation of all objects, in the order of the files.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explanation {
    /// The name of the driver whose classes are explained.
    pub(super) driver: String,
    pub(super) objects: Vec<Explained>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Outcome {
    #[default]
    Accepted,
    /// The object has problems.
    Rejected,
    Skipped,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explained {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) result: Outcome,
    /// Why the object is skipped.
    pub(super) skipped: Option<String>,
    pub(super) problems: Vec<Problem>,
    /// What CreateVolume tries, in this order.
    pub(super) candidates: Vec<Candidate>,
    /// Categories that are not tried, with the reason.
    pub(super) excluded: Vec<String>,
    /// What a VolumeAttributesClass does to a disk of each category.
    pub(super) changes: Vec<DiskChange>,
    pub(super) notes: Vec<String>,
}

/// Something that Kubernetes or the driver rejects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Problem {
    /// The field of the object, such as `parameters.type`.
    pub(super) field: String,
    pub(super) message: String,
}

/// A disk that CreateVolume tries to create.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate {
    /// `None`: the zone of the node, or none for a regional category.
    pub(super) zone: Option<ZoneId>,
    pub(super) category: Category,
    pub(super) level: Option<PerformanceLevel>,
    #[serde(rename = "sizeGiB")]
    pub(super) size: Gib,
    #[serde(rename = "minSizeGiB")]
    pub(super) min_size: Gib,
    #[serde(rename = "maxSizeGiB")]
    pub(super) max_size: Gib,
    /// `None` if the cloud documents no figures.
    pub(super) performance: Option<Performance>,
    /// Requested IOPS in addition to the baseline, and the maximum for this size.
    pub(super) provisioned_iops: u32,
    pub(super) max_provisioned_iops: u32,
    pub(super) bursting: bool,
    /// `None` if the stock was not queried.
    pub(super) in_stock: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DiskChange {
    /// The category of the disk before the change.
    pub(super) category: String,
    #[serde(rename = "sizeGiB")]
    pub(super) size_gib: u32,
    /// The disk after the change; `None` if the driver rejects it.
    pub(super) becomes: Option<String>,
    pub(super) rejection: Option<String>,
}

impl Explained {
    pub(super) fn skip(&mut self, why: impl Into<String>) {
        self.result = Outcome::Skipped;
        self.skipped = Some(why.into());
    }

    /// Adds a problem, unless it is known: a request repeats the problems of its parts.
    pub(super) fn reject(&mut self, field: impl Into<String>, message: &(impl ToString + ?Sized)) {
        let message = message.to_string();
        self.result = Outcome::Rejected;
        if !self.problems.iter().any(|known| known.message == message) {
            self.problems.push(Problem {
                field: field.into(),
                message,
            });
        }
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }
}
