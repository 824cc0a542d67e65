//! The parameters of a StorageClass.

use super::kind;
use super::value::{Entry, Map, Result, SIDECARS, boolean, conflict, entries, identifier, iops, list, parse, tags};
use crate::csi::request::error::Error;
use crate::csi::request::field::{filesystem, invalid_tuning};
use crate::disk::{AllowedZone, NewDisk};
use crate::model::tag::{CREATED_FOR, LONGEST_VALUE};
use crate::model::{Category, Change, Filesystem, InvalidTuning, PerformanceLevel, RegionId, Tags, Tuning, ZoneId};

/// Prefix of tags, in lower case.
pub(super) const TAGS: &str = "disktags/";
const ALLOWED: &str = "type, zoneId, regionId, performanceLevel, provisionedIops, burstingEnabled, \
                       multiAttach, resourceGroupId, diskTags, diskTags/<key>, fsType, readOnly, \
                       encrypted, kmsKeyId, fsck, discard, projectQuota, blockSize, inodeSize, \
                       bytesPerInode, label, mkfsOptions, sysConfig, partition and csi.storage.k8s.io/*";

/// Parameters `csi.storage.k8s.io/*` that become tags `kubernetes.io/created-for/*`.
const CLAIM: [&str; 3] = ["pvc/name", "pvc/namespace", "pv/name"];

/// The parsed parameters of a StorageClass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Class {
    /// `type`: categories in order of preference. Default: `available`, which means all.
    pub categories: Vec<Category>,
    /// `performanceLevel`: levels of `cloud_essd` in order of preference.
    pub levels: Vec<PerformanceLevel>,
    /// `provisionedIops`: in addition to the baseline of `cloud_auto`.
    pub provisioned_iops: u32,
    /// `burstingEnabled`: `cloud_auto` may exceed its baseline.
    pub bursting: bool,
    /// `multiAttach`: the disk can be attached to several nodes.
    pub multi_attach: bool,
    /// `resourceGroupId`; `None` is the default group of the account.
    pub resource_group: Option<String>,
    pub tags: Tags,
    /// Tags with the names of claim and volume, from external-provisioner.
    pub origin: Tags,
    /// `zoneId`: zones in order of preference.
    pub zones: Vec<ZoneId>,
    /// `regionId`: must be the region of the driver.
    pub region: Option<RegionId>,
    /// `fsType`: for capabilities without a filesystem.
    pub fs_type: Option<Filesystem>,
    /// `readOnly`: every mount is read-only.
    pub read_only: bool,
    /// `encrypted`: encryption at rest.
    pub encrypted: bool,
    /// `kmsKeyId`: KMS key of the encryption.
    pub kms_key: Option<String>,
    /// Options of mkfs, fsck and mount.
    pub tuning: Tuning,
}

impl Class {
    pub fn read(parameters: &Map) -> Result<Self> {
        Self::read_with(parameters, &Change::default())
    }

    /// Parses the parameters. Those of a VolumeAttributesClass override the mutable ones.
    pub fn read_with(parameters: &Map, change: &Change) -> Result<Self> {
        let mut class = Self {
            categories: Category::CREATABLE.to_vec(),
            origin: origin(parameters),
            ..Self::default()
        };
        let (entries, single) = entries("parameter", parameters, TAGS)?;
        let has_type = entries.iter().any(|entry| entry.name == "type");
        for entry in entries {
            class.set(entry)?;
        }
        class.check_compatibility(has_type)?;
        override_tags(&mut class.tags, single);
        class.change(change);
        class.check_compatibility(true)?;
        if let Some(filesystem) = class.fs_type {
            class.check_mkfs_options(filesystem)?;
        }
        class.count_tags(0)?;
        Ok(class)
    }

    fn set(&mut self, entry: Entry<'_>) -> Result<()> {
        let (field, value) = (&*entry.field, entry.value);
        match &*entry.name {
            "type" => self.categories = kind::categories(field, value)?,
            "performancelevel" => {
                self.levels = list(field, value, "a comma-separated list of PL0, PL1, PL2, PL3")?;
            }
            "provisionediops" => self.provisioned_iops = iops(field, value)?,
            "burstingenabled" => self.bursting = boolean(field, value)?,
            "multiattach" => self.multi_attach = boolean(field, value)?,
            "resourcegroupid" => self.resource_group = identifier(field, value)?,
            "disktags" => self.tags = tags(field, value)?,
            "zoneid" => self.zones = list(field, value, "a comma-separated list of zone IDs")?,
            "regionid" => self.region = Some(parse(field, value, "a region ID")?),
            "fstype" => self.fs_type = Some(filesystem(entry.field, value)?),
            "readonly" => self.read_only = boolean(field, value)?,
            "encrypted" => self.encrypted = boolean(field, value)?,
            "kmskeyid" => self.kms_key = identifier(field, value)?,
            _ if self.tuning.set(entry.key, value).map_err(|e| invalid_option(&e))? => {}
            _ => return Err(entry.unknown(ALLOWED)),
        }
        Ok(())
    }

    /// Applies the parameters of a VolumeAttributesClass. With a new category, parameters that it does not support are
    /// reset.
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

    /// Checks that the parameters are compatible. If no category was given, those without multi-attach
    /// are removed instead of rejected.
    fn check_compatibility(&mut self, has_type: bool) -> Result<()> {
        let levels = !self.levels.is_empty();
        let iops = self.provisioned_iops > 0;
        kind::check_categories("parameter", &self.categories, levels, iops, self.bursting)?;
        if !self.zones.is_empty() && self.categories.iter().all(Category::is_regional) {
            let names = kind::names(&self.categories);
            let why = format!("cannot be set: \"type\" is {names}, which is not bound to a zone");
            return Err(conflict("zoneId", &why));
        }
        if self.kms_key.is_some() && !self.encrypted {
            return Err(conflict("kmsKeyId", "requires \"encrypted\": \"true\""));
        }
        if self.multi_attach {
            self.check_multi_attach(has_type)?;
        }
        Ok(())
    }

    fn check_multi_attach(&mut self, has_type: bool) -> Result<()> {
        if self.bursting {
            return Err(conflict(
                "burstingEnabled",
                "and \"multiAttach\" are mutually exclusive: a shared disk cannot burst",
            ));
        }
        // `available` equals the list of all categories.
        if self.categories == Category::CREATABLE || !has_type {
            self.categories.retain(Category::is_shareable);
        }
        match self.categories.iter().find(|c| !c.is_shareable()) {
            None => Ok(()),
            Some(category) => Err(conflict(
                "multiAttach",
                &format!("requires cloud_essd or cloud_auto, but \"type\" contains {category}; remove it"),
            )),
        }
    }

    /// The disk of this class in these zones, without name, size and source.
    pub(in crate::csi) fn into_disk(self, zones: Vec<AllowedZone>) -> NewDisk {
        NewDisk {
            zones,
            categories: self.categories,
            levels: self.levels,
            encrypted: self.encrypted,
            kms_key: self.kms_key,
            provisioned_iops: self.provisioned_iops,
            bursting: self.bursting,
            multi_attach: self.multi_attach,
            resource_group: self.resource_group,
            tags: self.tags,
            created_for: self.origin,
            ..NewDisk::default()
        }
    }

    /// Checks the mkfs options for this filesystem.
    pub fn check_mkfs_options(&self, filesystem: Filesystem) -> Result<()> {
        let arguments = self.tuning.mkfs_arguments(filesystem, "");
        arguments.map(drop).map_err(|error| invalid_option(&error))
    }

    /// Checks that the tags of the class and of the driver, and `more` tags, fit on a disk.
    pub fn count_tags(&self, more: usize) -> Result<()> {
        use crate::model::tag::{MAX_TAGS, OWN_COUNT};
        let own = OWN_COUNT + more;
        let count = self.tags.len() + self.origin.len() + own;
        if count > MAX_TAGS {
            return Err(conflict(
                "diskTags",
                &format!(
                    "sets {} tags; with {own} tags of the driver and {} with the names of claim and volume, \
                     a disk would have {count}, but the limit is {MAX_TAGS}",
                    self.tags.len(),
                    self.origin.len()
                ),
            ));
        }
        Ok(())
    }
}

fn invalid_option(invalid: &InvalidTuning) -> Error {
    invalid_tuning("parameter", invalid)
}

fn override_tags(tags: &mut Tags, by: Tags) {
    tags.retain(|key, _| !by.keys().any(|other| other.eq_ignore_ascii_case(key)));
    tags.extend(by);
}

/// The tags with the claim of a disk, from parameters that external-provisioner adds with `--extra-create-metadata`;
/// values are truncated to the maximum length.
fn origin(parameters: &Map) -> Tags {
    let of = |name: &&str| {
        let value = parameters.get(&format!("{SIDECARS}{name}"))?;
        let value: String = value.chars().take(LONGEST_VALUE).collect();
        (!value.is_empty()).then(|| (format!("{CREATED_FOR}{name}"), value))
    };
    CLAIM.iter().filter_map(of).collect()
}
