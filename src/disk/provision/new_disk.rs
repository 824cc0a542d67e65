use std::collections::BTreeSet;
use std::fmt;

use crate::model::{Category, DiskId, PerformanceLevel, SizeRange, SnapshotId, Tags, ZoneId};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewDisk {
    /// The CSI name; the same name is the same disk.
    pub name: String,
    pub size: SizeRange,
    /// In order of preference; not empty.
    pub categories: Vec<Category>,
    /// Levels of a `cloud_essd`, in order of preference; empty is the cloud's default, PL1.
    pub levels: Vec<PerformanceLevel>,
    /// In order of preference; empty only if all categories are regional.
    pub zones: Vec<AllowedZone>,
    pub snapshot: Option<SnapshotId>,
    /// The source of a clone, which is copied through a temporary snapshot.
    pub clone_of: Option<DiskId>,
    pub encrypted: bool,
    /// The user's KMS key; requires `encrypted`.
    pub kms_key: Option<String>,
    /// IOPS in addition to the baseline, for categories that support them.
    pub provisioned_iops: u32,
    pub bursting: bool,
    pub multi_attach: bool,
    /// `None` for the account's default.
    pub resource_group: Option<String>,
    /// Requested tags, which an existing disk must have.
    pub tags: Tags,
    /// Tags with the claim and volume names; not compared, because external-provisioner can start to pass them.
    pub created_for: Tags,
}

/// A zone in which the disk can be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedZone {
    pub zone: ZoneId,
    /// The categories that the nodes in the zone support; `None` if unknown.
    pub supported: Option<BTreeSet<Category>>,
}

impl AllowedZone {
    pub fn supports(&self, category: &Category) -> bool {
        self.supported
            .as_ref()
            .is_none_or(|supported| supported.contains(category))
    }
}

impl From<ZoneId> for AllowedZone {
    fn from(zone: ZoneId) -> Self {
        Self { zone, supported: None }
    }
}

impl fmt::Display for AllowedZone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.zone)?;
        if let Some(supported) = &self.supported {
            let supported: Vec<_> = supported.iter().map(Category::as_str).collect();
            write!(f, " with {}", supported.join(", "))?;
        }
        Ok(())
    }
}
