//! What is asked of a new disk.

use std::collections::BTreeSet;
use std::fmt;

use crate::model::{Category, DiskId, PerformanceLevel, SizeRange, SnapshotId, Tags, ZoneId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDisk {
    /// The CSI name; the same name is the same disk.
    pub name: String,
    pub size: SizeRange,
    /// What to buy, in order of preference; not empty.
    pub categories: Vec<Category>,
    /// Levels of a `cloud_essd`, in order of preference; empty is the cloud's default, PL1.
    pub levels: Vec<PerformanceLevel>,
    /// Where, in order of preference; empty only where all categories are regional.
    pub places: Vec<Place>,
    /// What to start from; none is blank.
    pub snapshot: Option<SnapshotId>,
    /// The disk whose content it has, by way of a snapshot that is gone by then.
    pub clone_of: Option<DiskId>,
    pub encrypted: bool,
    /// By this key of the user's; needs `encrypted`.
    pub kms_key: Option<String>,
    /// IOPS on top of the baseline, where a category has such.
    pub provisioned_iops: u32,
    /// Exceed the baseline, where a category can.
    pub bursting: bool,
    pub multi_attach: bool,
    /// The resource group it is billed to; none is the account's default.
    pub resource_group: Option<String>,
    /// Tags of the user's; part of what is asked for.
    pub tags: Tags,
    /// Tags that tell whom it was made for; not compared, because who calls may begin to say so.
    pub origin: Tags,
}

/// A zone that the disk may go to, and what can be used there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub zone: ZoneId,
    /// The categories that the nodes there take; none where they do not say.
    pub supported: Option<BTreeSet<Category>>,
}

impl Place {
    pub fn admits(&self, category: &Category) -> bool {
        self.supported
            .as_ref()
            .is_none_or(|supported| supported.contains(category))
    }
}

impl From<ZoneId> for Place {
    fn from(zone: ZoneId) -> Self {
        Self {
            zone,
            supported: None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.zone)?;
        if let Some(supported) = &self.supported {
            let supported: Vec<_> = supported.iter().map(Category::as_str).collect();
            write!(f, " with {}", supported.join(", "))?;
        }
        Ok(())
    }
}
