//! Parameters of a StorageClass. Names compare without case; an unknown name or a bad value is an
//! error that names both and says what is allowed. Nothing is ignored in silence.

use std::collections::HashMap;

use self::value::{Entry, boolean, entries, iops, list, parse, unfit, word};
use super::request::error::Error;
use super::request::field::{filesystem, invalid_tuning};
use crate::model::{
    Category, Change, Filesystem, InvalidTuning, PerformanceLevel, RegionId, Tags, Tuning, ZoneId,
};

mod kind;
pub mod mutable;
mod origin;
pub mod snapshot;
#[cfg(test)]
mod tests;
mod value;

/// Parameters that the sidecars add; the driver takes any of them, and makes tags of some.
pub(super) const SIDECARS: &str = "csi.storage.k8s.io/";
/// Before the key of a tag, in lower case.
const TAGS: &str = "disktags/";
const ALLOWED: &str = "type, zoneId, regionId, performanceLevel, provisionedIops, burstingEnabled, \
                       multiAttach, resourceGroupId, diskTags, diskTags/<key>, fsType, readOnly, \
                       encrypted, kmsKeyId, fsck, discard, projectQuota, blockSize, inodeSize, \
                       bytesPerInode, label, mkfsOptions and csi.storage.k8s.io/*";

type Result<T, E = Error> = std::result::Result<T, E>;
type Map = HashMap<String, String>;

/// What a StorageClass asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Class {
    /// `type`: categories in order of preference; `available`, also when absent, is all of them.
    pub categories: Vec<Category>,
    /// `performanceLevel`: levels of a `cloud_essd` in order of preference; empty when absent.
    pub levels: Vec<PerformanceLevel>,
    /// `provisionedIops`: on top of the baseline of a `cloud_auto`.
    pub provisioned_iops: u32,
    /// `burstingEnabled`: a `cloud_auto` may exceed its baseline.
    pub bursting: bool,
    /// `multiAttach`: several nodes may hold the disk at once.
    pub multi_attach: bool,
    /// `resourceGroupId`: none is the account's default.
    pub resource_group: Option<String>,
    /// `diskTags` and `diskTags/<key>`.
    pub tags: Tags,
    /// Tags that tell for which claim the disk is made, where the provisioner says so.
    pub origin: Tags,
    /// `zoneId`: zones in order of preference; empty when absent.
    pub zones: Vec<ZoneId>,
    /// `regionId`: must be the driver's.
    pub region: Option<RegionId>,
    /// `fsType`: for volumes whose capability names none.
    pub fs_type: Option<Filesystem>,
    /// `readOnly`: every mount is read-only.
    pub read_only: bool,
    /// `encrypted`: encrypt at rest.
    pub encrypted: bool,
    /// `kmsKeyId`: the user's key to encrypt by.
    pub kms_key: Option<String>,
    /// How filesystems are made and looked after.
    pub tuning: Tuning,
}

impl Class {
    /// Reads the parameters.
    pub fn read(parameters: &Map) -> Result<Self> {
        Self::read_with(parameters, &Change::default())
    }

    /// Reads the parameters, of which the mutable ones are overridden by those of a
    /// VolumeAttributesClass.
    pub fn read_with(parameters: &Map, change: &Change) -> Result<Self> {
        let mut class = Self {
            categories: Category::CREATABLE.to_vec(),
            origin: origin::tags(parameters),
            ..Self::default()
        };
        let (entries, single) = entries("parameter", parameters, TAGS)?;
        let named = entries.iter().any(|entry| entry.name == "type");
        for entry in entries {
            class.take(entry)?;
        }
        class.kinds_agree(named)?;
        override_tags(&mut class.tags, single);
        class.change(change);
        class.kinds_agree(true)?;
        if let Some(filesystem) = class.fs_type {
            class.makes(filesystem)?;
        }
        class.count_tags(0)?;
        Ok(class)
    }

    fn take(&mut self, entry: Entry<'_>) -> Result<()> {
        let (field, value) = (&*entry.field, entry.value);
        match &*entry.name {
            "type" => self.categories = kind::categories(field, value)?,
            "performancelevel" => {
                self.levels = list(field, value, "PL0, PL1, PL2, PL3, by commas")?;
            }
            "provisionediops" => self.provisioned_iops = iops(field, value)?,
            "burstingenabled" => self.bursting = boolean(field, value)?,
            "multiattach" => self.multi_attach = boolean(field, value)?,
            "resourcegroupid" => self.resource_group = word(field, value)?,
            "disktags" => self.tags = value::tags(field, value)?,
            "zoneid" => self.zones = list(field, value, "zone ids, separated by commas")?,
            "regionid" => self.region = Some(parse(field, value, "a region id")?),
            "fstype" => self.fs_type = Some(filesystem(entry.field, value)?),
            "readonly" => self.read_only = boolean(field, value)?,
            "encrypted" => self.encrypted = boolean(field, value)?,
            "kmskeyid" => self.kms_key = word(field, value)?,
            _ if self.tuning.take(entry.key, value).map_err(|e| unmade(&e))? => {}
            _ => return Err(entry.unknown(ALLOWED)),
        }
        Ok(())
    }

    /// Lets a VolumeAttributesClass override the mutable parameters. What the class says of another
    /// category than the one that it now is goes with that.
    fn change(&mut self, change: &Change) {
        if let Some(category) = &change.category {
            self.categories = vec![category.clone()];
            if !category.has_levels() {
                self.levels.clear();
            }
            if !category.has_burst() {
                self.provisioned_iops = 0;
                self.bursting = false;
            }
        }
        if let Some(level) = change.level {
            self.levels = vec![level];
        }
        if let Some(iops) = change.provisioned_iops {
            self.provisioned_iops = iops;
        }
        if let Some(bursting) = change.bursting {
            self.bursting = bursting;
        }
        override_tags(&mut self.tags, change.tags.clone());
    }

    /// Whether a filesystem of this type can be made so.
    pub fn makes(&self, filesystem: Filesystem) -> Result<()> {
        let arguments = self.tuning.mkfs_arguments(filesystem);
        arguments.map(drop).map_err(|error| unmade(&error))
    }

    /// Whether the tags fit on a disk, with so many more than every disk carries.
    pub fn count_tags(&self, more: usize) -> Result<()> {
        use crate::model::tag::{MOST, OWN_COUNT};
        let own = OWN_COUNT + more;
        let count = self.tags.len() + self.origin.len() + own;
        if count > MOST {
            return Err(unfit(
                "diskTags",
                &format!(
                    "gives {} tags; with {own} of the driver's own and {} that tell the claim \
                     a disk would have {count}, and it takes {MOST}",
                    self.tags.len(),
                    self.origin.len()
                ),
            ));
        }
        Ok(())
    }
}

fn unmade(invalid: &InvalidTuning) -> Error {
    invalid_tuning("parameter", invalid)
}

fn override_tags(tags: &mut Tags, by: Tags) {
    tags.retain(|key, _| !by.keys().any(|other| other.eq_ignore_ascii_case(key)));
    tags.extend(by);
}
