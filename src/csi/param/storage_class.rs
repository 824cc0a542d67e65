use super::template;
use super::value::{
    self, Entry, Map, Result, SIDECARS, boolean, conflict, entries, identifier, iops, list, number, parse, tags,
};
use crate::csi::request::error::Error;
use crate::csi::request::field::{filesystem, invalid_tuning};
use crate::disk::NewDisk;
use crate::model::tag::{CREATED_FOR, LONGEST_VALUE, MAX_RETENTION_DAYS};
use crate::model::{Category, Change, Filesystem, RegionId, Tags, Tuning, ZoneId};

/// Prefix of tags, in lower case.
pub(super) const TAGS: &str = "disktags/";
const ALLOWED: &str = "type, zoneId, regionId, performanceLevel, provisionedIops, burstingEnabled, \
                       multiAttach, resourceGroupId, diskTags, diskTags/<key>, \
                       volumeDeleteSnapshotRetentionDays, fsType, readOnly, encrypted, kmsKeyId, fsck, discard, projectQuota, blockSize, inodeSize, \
                       bytesPerInode, label, mkfsOptions, sysConfig, partition and csi.storage.k8s.io/*";

/// Parameters `csi.storage.k8s.io/*` that become tags `kubernetes.io/created-for/*`.
const CLAIM: [&str; 3] = ["pvc/name", "pvc/namespace", "pv/name"];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Class {
    /// Without name, size, source and zones. `type`: default `available`, which means all.
    pub disk: NewDisk,
    pub zones: Vec<ZoneId>,
    /// `regionId`: must be the region of the driver.
    pub region: Option<RegionId>,
    /// `fsType`: for capabilities without a filesystem.
    pub fs_type: Option<Filesystem>,
    pub read_only: bool,
    pub tuning: Tuning,
}

impl Class {
    pub fn read(parameters: &Map) -> Result<Self> {
        Self::read_with(parameters, &Change::default())
    }

    /// Parses the parameters. Those of a VolumeAttributesClass override the mutable ones.
    pub fn read_with(parameters: &Map, change: &Change) -> Result<Self> {
        let mut class = Self {
            disk: NewDisk {
                categories: Category::CREATABLE.to_vec(),
                created_for: created_for(parameters),
                ..NewDisk::default()
            },
            ..Self::default()
        };
        let (entries, mut single) = entries("parameter", parameters, TAGS)?;
        let has_type = entries.iter().any(|entry| entry.name == "type");
        for entry in entries {
            class.set(entry)?;
        }
        class.check_compatibility(has_type)?;
        template::expand(template::single("parameter"), &mut single, None)?;
        override_tags(&mut class.disk.tags, single);
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
            "type" => self.disk.categories = value::categories(field, value)?,
            "performancelevel" => {
                self.disk.levels = list(field, value, "a comma-separated list of PL0, PL1, PL2, PL3")?;
            }
            "provisionediops" => self.disk.provisioned_iops = iops(field, value)?,
            "burstingenabled" => self.disk.bursting = boolean(field, value)?,
            "multiattach" => self.disk.multi_attach = boolean(field, value)?,
            "resourcegroupid" => self.disk.resource_group = identifier(field, value)?,
            "disktags" => {
                self.disk.tags = tags(field, value)?;
                template::expand(|_| field.to_owned(), &mut self.disk.tags, None)?;
            }
            "volumedeletesnapshotretentiondays" => {
                self.disk.deletion_snapshot_days = Some(number(field, value, "days", 1, MAX_RETENTION_DAYS)?);
            }
            "zoneid" => self.zones = list(field, value, "a comma-separated list of zone IDs")?,
            "regionid" => self.region = Some(parse(field, value, "a region ID")?),
            "fstype" => self.fs_type = Some(filesystem(entry.field, value)?),
            "readonly" => self.read_only = boolean(field, value)?,
            "encrypted" => self.disk.encrypted = boolean(field, value)?,
            "kmskeyid" => self.disk.kms_key = identifier(field, value)?,
            _ if self.tuning.set(entry.key, value).map_err(invalid_tuning("parameter"))? => {}
            _ => return Err(Error::unknown_key(field, value, ALLOWED)),
        }
        Ok(())
    }

    /// Applies a VolumeAttributesClass. Parameters that its category does not support are reset.
    fn change(&mut self, change: &Change) {
        if let Some(category) = &change.category {
            self.disk.categories = vec![category.clone()];
            if !category.has_levels() {
                self.disk.levels.clear();
            }
            if !category.has_burst() {
                self.disk.provisioned_iops = 0;
                self.disk.bursting = false;
            }
        }
        if let Some(level) = change.level {
            self.disk.levels = vec![level];
        }
        if let Some(iops) = change.provisioned_iops {
            self.disk.provisioned_iops = iops;
        }
        if let Some(bursting) = change.bursting {
            self.disk.bursting = bursting;
        }
        override_tags(&mut self.disk.tags, change.tags.clone());
    }

    /// If no category was given, those without multi-attach are removed instead of rejected.
    fn check_compatibility(&mut self, has_type: bool) -> Result<()> {
        let levels = !self.disk.levels.is_empty();
        let iops = self.disk.provisioned_iops > 0;
        value::check_categories("parameter", &self.disk.categories, levels, iops, self.disk.bursting)?;
        if !self.zones.is_empty() && self.disk.categories.iter().all(Category::is_regional) {
            let names = value::names(&self.disk.categories);
            let why = format!("cannot be set: \"type\" is {names}, which is not bound to a zone");
            return Err(conflict("zoneId", &why));
        }
        if self.disk.kms_key.is_some() && !self.disk.encrypted {
            return Err(conflict("kmsKeyId", "requires \"encrypted\": \"true\""));
        }
        let scratch = self.disk.categories.iter().find(|category| category.is_ephemeral());
        if let (Some(_), Some(category)) = (self.disk.deletion_snapshot_days, scratch) {
            let why = format!("cannot be set: \"type\" contains {category}, which has no snapshots");
            return Err(conflict("volumeDeleteSnapshotRetentionDays", &why));
        }
        if self.disk.multi_attach {
            self.check_multi_attach(has_type)?;
        }
        Ok(())
    }

    fn check_multi_attach(&mut self, has_type: bool) -> Result<()> {
        if self.disk.bursting {
            return Err(conflict(
                "burstingEnabled",
                "and \"multiAttach\" are mutually exclusive: a shared disk cannot burst",
            ));
        }
        // `available` equals the list of all categories.
        if self.disk.categories == Category::CREATABLE || !has_type {
            self.disk.categories.retain(Category::is_shareable);
        }
        match self.disk.categories.iter().find(|c| !c.is_shareable()) {
            None => Ok(()),
            Some(category) => Err(conflict(
                "multiAttach",
                &format!("requires cloud_essd or cloud_auto, but \"type\" contains {category}; remove it"),
            )),
        }
    }

    /// Replaces the names of claim and volume in the tags, also in those of a VolumeAttributesClass.
    pub fn expand_tags(&mut self, parameters: &Map) -> Result<()> {
        let from = Some((parameters, "csi-provisioner with --extra-create-metadata"));
        template::expand(template::single("parameter"), &mut self.disk.tags, from)
    }

    pub fn check_mkfs_options(&self, filesystem: Filesystem) -> Result<()> {
        let arguments = self.tuning.mkfs_arguments(filesystem, "");
        arguments.map(drop).map_err(invalid_tuning("parameter"))
    }

    /// Checks that the tags of the class and of the driver, and `more` tags, fit on a disk.
    pub fn count_tags(&self, more: usize) -> Result<()> {
        use crate::model::tag::{MAX_TAGS, OWN_COUNT};
        let own = OWN_COUNT + more + usize::from(self.disk.deletion_snapshot_days.is_some());
        let count = self.disk.tags.len() + self.disk.created_for.len() + own;
        if count > MAX_TAGS {
            return Err(conflict(
                "diskTags/<key>",
                &format!(
                    "sets {} tags; with {own} tags of the driver and {} with the names of claim and volume, \
                     a disk would have {count}, but the limit is {MAX_TAGS}",
                    self.disk.tags.len(),
                    self.disk.created_for.len()
                ),
            ));
        }
        Ok(())
    }
}

fn override_tags(tags: &mut Tags, by: Tags) {
    tags.retain(|key, _| !by.keys().any(|other| other.eq_ignore_ascii_case(key)));
    tags.extend(by);
}

/// The tags with the claim of a disk, from external-provisioner with `--extra-create-metadata`, truncated.
fn created_for(parameters: &Map) -> Tags {
    let of = |name: &&str| {
        let value = parameters.get(&format!("{SIDECARS}{name}"))?;
        let value: String = value.chars().take(LONGEST_VALUE).collect();
        (!value.is_empty()).then(|| (format!("{CREATED_FOR}{name}"), value))
    };
    CLAIM.iter().filter_map(of).collect()
}
