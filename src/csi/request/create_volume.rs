//! CreateVolume, and GetCapacity, which asks about volumes of a class.

use std::collections::HashMap;

use super::capability::{self, Capability};
use super::error::Error;
use super::topology::{Settings, Terms};
use super::{Result, field};
use crate::cluster::events::Claim;
use crate::csi::param::{Class, SIDECARS, mutable};
use crate::csi::proto;
use crate::csi::proto::volume_content_source::Type;
use crate::disk::NewDisk;
use crate::model::{Category, DiskId, SizeRange, SnapshotId, context};

#[derive(Debug)]
pub(crate) struct CreateVolume {
    pub(crate) new: NewDisk,
    /// The claim that the volume is for, as the provisioner names it with `--extra-create-metadata`.
    pub(crate) claim: Option<Claim>,
    /// Whether the nodes say which categories they take.
    pub(crate) nodes_say: bool,
    /// CSI: the answer names the source that was asked for.
    pub(crate) content_source: Option<proto::VolumeContentSource>,
    /// What the node must know of the class.
    pub(crate) volume_context: HashMap<String, String>,
}

pub(crate) fn create(
    message: &proto::CreateVolumeRequest,
    settings: &Settings,
) -> Result<CreateVolume> {
    let name = field::name(&message.name)?;
    let capabilities = capability::at_least_one(&message.volume_capabilities)?;
    let change = mutable::read(&message.mutable_parameters)?;
    let class = Class::read_with(&message.parameters, &change)?;
    capability::fit(&capabilities, class.multi_attach)?;
    mounts_fit(&capabilities, &class)?;
    let (snapshot, clone_of) = source(message.volume_content_source.as_ref())?;
    // A clone is tagged with what it was cloned from.
    class.count_tags(usize::from(clone_of.is_some()))?;
    let terms = Terms::of(message.accessibility_requirements.as_ref());
    let parameter = |key: &str| message.parameters.get(&format!("{SIDECARS}{key}"));
    let claim = parameter("pvc/namespace").zip(parameter("pvc/name"));
    Ok(CreateVolume {
        claim: claim.map(|(namespace, claim)| Claim::of_volume(namespace, claim, &name)),
        nodes_say: terms.nodes_say(),
        content_source: message.volume_content_source.clone(),
        volume_context: volume_context(&class),
        new: NewDisk {
            name,
            size: field::size_range(message.capacity_range.as_ref())?,
            snapshot,
            clone_of,
            ..of_class(class, &terms, settings)?
        },
    })
}

/// A volume of any name and size. None where the class excludes that place.
pub(crate) fn capacity(
    message: &proto::GetCapacityRequest,
    settings: &Settings,
) -> Result<Option<NewDisk>> {
    capability::all(&message.volume_capabilities)?;
    let class = Class::read(&message.parameters)?;
    let terms = Terms::one(message.accessible_topology.as_ref());
    match of_class(class, &terms, settings) {
        Err(Error::NoZone(..)) => Ok(None),
        new => Ok(Some(NewDisk {
            // They bound the size and not what there is.
            provisioned_iops: 0,
            bursting: false,
            ..new?
        })),
    }
}

/// Whether the node will be able to make the filesystems and to mount them: the node does it only when the volume is
/// long bound.
pub(super) fn mounts_fit(capabilities: &[Capability], class: &Class) -> Result<()> {
    let default = class.fs_type.unwrap_or_default();
    for capability in capabilities {
        if let Some(filesystem) = capability.mounted_with(default)? {
            class.makes(filesystem)?;
        }
    }
    Ok(())
}

/// All that class and topology say of a disk, which has no name or size yet.
fn of_class(class: Class, terms: &Terms<'_>, settings: &Settings) -> Result<NewDisk> {
    if let Some(other) = class.region.filter(|other| *other != settings.region) {
        let allowed = format!("{}, the driver's own region", settings.region);
        return Err(Error::value(
            "parameter \"regionId\"",
            other.as_str(),
            allowed,
        ));
    }
    let regional = class.categories.iter().any(Category::is_regional);
    Ok(NewDisk {
        name: String::new(),
        size: SizeRange::default(),
        places: terms.choose(&class.zones, settings.zone.as_ref(), regional)?,
        categories: class.categories,
        levels: class.levels,
        snapshot: None,
        clone_of: None,
        encrypted: class.encrypted,
        kms_key: class.kms_key,
        provisioned_iops: class.provisioned_iops,
        bursting: class.bursting,
        multi_attach: class.multi_attach,
        resource_group: class.resource_group,
        tags: class.tags,
        origin: class.origin,
    })
}

/// The snapshot or the volume whose content is wanted; neither is a blank disk.
fn source(
    source: Option<&proto::VolumeContentSource>,
) -> Result<(Option<SnapshotId>, Option<DiskId>)> {
    match source.map(|source| &source.r#type) {
        None => Ok((None, None)),
        Some(Some(Type::Snapshot(snapshot))) => {
            let field = "volume_content_source.snapshot.snapshot_id";
            Ok((Some(field::id(field, &snapshot.snapshot_id)?), None))
        }
        Some(Some(Type::Volume(volume))) => {
            let field = "volume_content_source.volume.volume_id";
            Ok((None, Some(field::id(field, &volume.volume_id)?)))
        }
        Some(None) => Err(Error::unsupported(
            "volume_content_source",
            "names neither snapshot nor volume",
        )),
    }
}

fn volume_context(class: &Class) -> HashMap<String, String> {
    let flag = |key, set: bool| set.then(|| (key, "true".to_owned()));
    let fs_type = class
        .fs_type
        .map(|name| (context::FS_TYPE, name.to_string()));
    let flags = [
        flag(context::READ_ONLY, class.read_only),
        flag(context::MULTI_ATTACH, class.multi_attach),
    ];
    let entries = fs_type.into_iter().chain(flags.into_iter().flatten());
    let entries = entries.chain(class.tuning.entries());
    entries
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
