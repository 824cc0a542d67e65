use std::collections::BTreeSet;
use std::fmt;

use ecs::CreateDisk;

use crate::disk::ownership::display_name;
use crate::model::{Category, ClientToken, DiskId, Gib, PerformanceLevel, SizeRange, SnapshotId, Tags, ZoneId, tag};

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
    /// Tags of the user, which an existing disk must have.
    pub tags: Tags,
    /// Days for which the cloud keeps the snapshot that is taken before the disk is deleted; `None` for no snapshot.
    pub deletion_snapshot_days: Option<u32>,
    /// Tags with the claim and volume names; not compared, because external-provisioner can start to pass them.
    pub created_for: Tags,
}

impl NewDisk {
    /// The tags that an existing disk must have.
    pub(super) fn requested_tags(&self) -> Tags {
        let days = self.deletion_snapshot_days.map(|days| days.to_string());
        let days = days.map(|days| (tag::DELETION_SNAPSHOT_DAYS.to_owned(), days));
        self.tags.clone().into_iter().chain(days).collect()
    }

    /// The request, with `tags`, by which the disk is found, and all others. Tags for each new disk are added here.
    pub(in crate::disk) fn request(&self, candidate: &Candidate, mut tags: Tags, token: ClientToken) -> CreateDisk {
        let burst = candidate.category.has_burst();
        if let Some(source) = &self.clone_of {
            tags.insert(tag::CLONE_OF.to_owned(), source.to_string());
        }
        tags.extend(self.requested_tags());
        tags.extend(self.created_for.clone());
        CreateDisk {
            zone: candidate.zone.clone(),
            category: candidate.category.clone(),
            performance_level: candidate.level,
            provisioned_iops: (burst && self.provisioned_iops > 0).then_some(self.provisioned_iops),
            bursting: burst && self.bursting,
            multi_attach: self.multi_attach,
            resource_group: self.resource_group.clone(),
            size: candidate.size,
            name: display_name(&self.name),
            snapshot: self.snapshot.clone(),
            encrypted: self.encrypted,
            kms_key: self.kms_key.clone(),
            tags,
            token,
        }
    }
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

/// Where and how the disk can be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// `None` for a regional category.
    pub zone: Option<ZoneId>,
    pub category: Category,
    /// `None` for the cloud's default, or a category without levels.
    pub level: Option<PerformanceLevel>,
    pub size: Gib,
}

/// Such as `cloud_essd PL2 in cn-beijing-a`.
impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.category)?;
        if let Some(level) = self.level {
            write!(f, " {level}")?;
        }
        match &self.zone {
            Some(zone) => write!(f, " in {zone}"),
            None => f.write_str(" in the region"),
        }
    }
}
