use std::collections::HashMap;

use super::capability::{self, Capability};
use super::error::{Error, Result};
use super::field;
use super::topology::{DriverLocation, Terms};
use crate::cluster::events::Claim;
use crate::csi::param::{Class, SIDECARS, mutable};
use crate::csi::proto;
use crate::csi::proto::volume_content_source::Type;
use crate::disk::NewDisk;
use crate::model::{Category, DiskId, Failure, SnapshotId, context};

#[derive(Debug)]
pub(crate) struct CreateVolume {
    pub(crate) new: NewDisk,
    /// The PersistentVolumeClaim, as named by external-provisioner with `--extra-create-metadata`.
    pub(crate) claim: Option<Claim>,
    pub(crate) nodes_report_categories: bool,
    pub(crate) volume_context: HashMap<String, String>,
}

pub(crate) fn create(message: &proto::CreateVolumeRequest, location: &DriverLocation) -> Result<CreateVolume> {
    let name = field::name(&message.name)?;
    let capabilities = capability::at_least_one(&message.volume_capabilities)?;
    let change = mutable::read(&message.mutable_parameters)?;
    let mut class = Class::read_with(&message.parameters, &change)?;
    class.expand_tags(&message.parameters)?;
    capability::fit(&capabilities, class.disk.multi_attach)?;
    check_mounts(&capabilities, &class)?;
    let (snapshot, clone_of) = source(message.volume_content_source.as_ref())?;
    if capability::for_readers_only(&capabilities)? && snapshot.is_none() && clone_of.is_none() {
        let why = "is required for MULTI_NODE_READER_ONLY of a filesystem, which would be empty: set the dataSource of the \
                   claim to a snapshot or another claim";
        return Err(Error::unsupported("volume_content_source", why));
    }
    // A clone has an additional tag with its source.
    class.count_tags(usize::from(clone_of.is_some()))?;
    let terms = Terms::of(message.accessibility_requirements.as_ref());
    let parameter = |key: &str| message.parameters.get(&format!("{SIDECARS}{key}"));
    let claim = parameter("pvc/namespace").zip(parameter("pvc/name"));
    Ok(CreateVolume {
        claim: claim.map(|(namespace, claim)| Claim::of_volume(namespace, claim, &name)),
        nodes_report_categories: terms.nodes_report_categories(),
        volume_context: volume_context(&class),
        new: NewDisk {
            name,
            size: field::size_range(message.capacity_range.as_ref())?,
            snapshot,
            clone_of,
            ..describe_disk(class, &terms, location)?
        },
    })
}

/// A volume of any name and size; `None` if the class excludes the topology.
pub(crate) fn capacity(message: &proto::GetCapacityRequest, location: &DriverLocation) -> Result<Option<NewDisk>> {
    capability::all(&message.volume_capabilities)?;
    let class = Class::read(&message.parameters)?;
    let terms = Terms::of_topology(message.accessible_topology.as_ref());
    match describe_disk(class, &terms, location) {
        Err(error) if error.failure == Failure::NoSuitableZone => Ok(None),
        new => Ok(Some(NewDisk {
            // These restrict the sizes of a volume, not the capacity.
            provisioned_iops: 0,
            bursting: false,
            ..new?
        })),
    }
}

/// Checks mkfs options, which the node would otherwise reject after the volume is bound.
pub(super) fn check_mounts(capabilities: &[Capability], class: &Class) -> Result<()> {
    let default = class.fs_type.unwrap_or_default();
    for capability in capabilities {
        if let Some(filesystem) = capability.mounted_with(default) {
            class.check_mkfs_options(filesystem)?;
        }
    }
    Ok(())
}

/// The disk that class and topology describe, without name and size.
fn describe_disk(class: Class, terms: &Terms<'_>, location: &DriverLocation) -> Result<NewDisk> {
    if let Some(other) = class.region.as_ref().filter(|other| **other != location.region) {
        let allowed = format!("{}, the region of the driver", location.region);
        return Err(Error::value("parameter \"regionId\"", other.as_str(), allowed));
    }
    let regional = class.disk.categories.iter().any(Category::is_regional);
    let zones = terms.choose(&class.zones, location.zone.as_ref(), regional)?;
    Ok(NewDisk { zones, ..class.disk })
}

/// The source snapshot or volume; neither for a blank disk.
fn source(source: Option<&proto::VolumeContentSource>) -> Result<(Option<SnapshotId>, Option<DiskId>)> {
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
            "has neither snapshot nor volume",
        )),
    }
}

fn volume_context(class: &Class) -> HashMap<String, String> {
    let flag = |key, set: bool| set.then(|| (key, "true".to_owned()));
    let entries = [
        class.fs_type.map(|name| (context::FS_TYPE, name.to_string())),
        flag(context::READ_ONLY, class.read_only),
        flag(context::MULTI_ATTACH, class.disk.multi_attach),
    ];
    let entries = entries.into_iter().flatten().chain(class.tuning.entries());
    entries.map(|(key, value)| (key.to_owned(), value)).collect()
}
