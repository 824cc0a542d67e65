//! The explanation of objects. Its JSON form is documented in `docs/reference/command-line.md`.

use serde::Serialize;

/// The explanation of all objects, in the order of the files.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The name of the driver whose classes are explained.
    pub driver: String,
    pub objects: Vec<Explained>,
}

impl Explanation {
    /// The number of objects that would be rejected.
    #[must_use]
    pub fn rejected(&self) -> usize {
        let objects = self.objects.iter();
        objects.filter(|object| object.result == Outcome::Rejected).count()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    #[default]
    Accepted,
    /// The object has problems.
    Rejected,
    Skipped,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    pub kind: String,
    pub name: String,
    pub result: Outcome,
    /// Why the object is skipped.
    pub skipped: Option<String>,
    pub problems: Vec<Problem>,
    pub settings: Vec<Setting>,
    /// What CreateVolume tries, in this order.
    pub candidates: Vec<Candidate>,
    /// Categories that are not tried, with the reason.
    pub excluded: Vec<String>,
    /// What a VolumeAttributesClass does to a disk of each category.
    pub changes: Vec<DiskChange>,
    pub notes: Vec<String>,
}

/// Something that Kubernetes or the driver rejects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The field of the object, such as `parameters.type`.
    pub field: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    pub name: &'static str,
    pub value: String,
    pub effect: Option<String>,
}

/// A disk that CreateVolume tries to create.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// `None`: the zone of the node, or none for a regional category.
    pub zone: Option<String>,
    pub category: String,
    pub level: Option<&'static str>,
    #[serde(rename = "sizeGiB")]
    pub size_gib: u32,
    #[serde(rename = "minSizeGiB")]
    pub min_size_gib: u32,
    #[serde(rename = "maxSizeGiB")]
    pub max_size_gib: u32,
    /// `None` if the cloud documents no figures.
    pub performance: Option<Figures>,
    /// Requested IOPS in addition to the baseline, and the maximum for this size.
    pub provisioned_iops: u32,
    pub max_provisioned_iops: u32,
    pub bursting: bool,
    /// `None` if the stock was not queried.
    pub in_stock: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    pub read_iops: u32,
    pub write_iops: u32,
    #[serde(rename = "readMBps")]
    pub read_mbps: f64,
    #[serde(rename = "writeMBps")]
    pub write_mbps: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiskChange {
    /// The category of the disk before the change.
    pub category: String,
    #[serde(rename = "sizeGiB")]
    pub size_gib: u32,
    /// The disk after the change; `None` if the driver rejects it.
    pub becomes: Option<String>,
    pub rejection: Option<String>,
}

impl Explained {
    pub(super) fn of(kind: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            name: name.to_owned(),
            ..Self::default()
        }
    }

    pub(super) fn skip(mut self, why: impl Into<String>) -> Self {
        self.result = Outcome::Skipped;
        self.skipped = Some(why.into());
        self
    }

    pub(super) fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.settings.push(Setting {
            name,
            value: value.into(),
            effect: None,
        });
    }

    pub(super) fn set_with(&mut self, name: &'static str, value: impl Into<String>, effect: impl Into<String>) {
        self.settings.push(Setting {
            name,
            value: value.into(),
            effect: Some(effect.into()),
        });
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
