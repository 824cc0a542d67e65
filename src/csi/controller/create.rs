//! CreateVolume and DeleteVolume.

use std::collections::HashMap;
use std::sync::Arc;

use tonic::Status;

use super::operation::Operation;
use super::{Service, Settings, answer, tell, zones};
use crate::base::Deadline;
use crate::csi::capability::Capability;
use crate::csi::param::{Class, mutable};
use crate::csi::proto::volume_content_source::Type;
use crate::csi::{capability, layer, proto, request, status};
use crate::disk::NewDisk;
use crate::model::{Category, DiskId, SizeRange, SnapshotId, context};

pub(super) async fn create(
    service: &Service,
    deadline: Deadline,
    request: proto::CreateVolumeRequest,
) -> Result<proto::CreateVolumeResponse, Status> {
    layer::about("volume.name", &request.name);
    let (new, class) = read(&request, &service.settings)?;
    let nodes_say = zones::nodes_say(request.accessibility_requirements.as_ref());
    let guard = service.begin(&Operation::CreateVolume(&new.name))?;
    let disks = Arc::clone(&service.disks);
    let made = service
        .alone(guard, async move {
            match &new.clone_of {
                Some(source) => {
                    Box::pin(disks.provisioner.create_clone(deadline, &new, source)).await
                }
                None => disks.provisioner.create(deadline, &new).await,
            }
        })
        .await?;
    let disk = made.map_err(|error| {
        tell::not_created(service, &request, &error);
        status::of(&error)
    })?;
    layer::about("disk.id", &disk.id);
    let mut volume = answer::volume(&disk, class.context());
    // The answer must name the source that was asked for (CSI `CreateVolume`).
    volume.content_source = request.volume_content_source;
    volume.accessible_topology = answer::topology(&disk, nodes_say);
    Ok(proto::CreateVolumeResponse {
        volume: Some(volume),
    })
}

pub(super) async fn delete(
    service: &Service,
    deadline: Deadline,
    request: &proto::DeleteVolumeRequest,
) -> Result<proto::DeleteVolumeResponse, Status> {
    let id = request::required("volume_id", &request.volume_id)?;
    layer::about("disk.id", id);
    // What cannot be a disk is certainly gone.
    if let Ok(disk) = id.parse::<DiskId>() {
        let guard = service.begin(&Operation::DeleteVolume(&disk))?;
        let disks = Arc::clone(&service.disks);
        service
            .change(guard, async move {
                disks.provisioner.delete(deadline, &disk).await
            })
            .await?;
        service.listings.deleted(id);
    }
    Ok(proto::DeleteVolumeResponse {})
}

fn read(
    request: &proto::CreateVolumeRequest,
    settings: &Settings,
) -> Result<(NewDisk, Class), Status> {
    let name = request::name("name", &request.name)?;
    let capabilities =
        capability::check_all(&request.volume_capabilities).map_err(|e| request::invalid(&e))?;
    let change = mutable::read(&request.mutable_parameters)?;
    let class = Class::read_with(&request.parameters, &change)?;
    capability::fit(&capabilities, class.multi_attach).map_err(|e| request::invalid(&e))?;
    mounts_fit(&capabilities, &class)?;
    let requirement = request.accessibility_requirements.as_ref();
    let (snapshot, clone_of) = source(request.volume_content_source.as_ref())?;
    // A clone is tagged with what it was cloned from.
    class.count_tags(usize::from(clone_of.is_some()))?;
    let new = NewDisk {
        name,
        size: request::size_range(request.capacity_range.as_ref())?,
        snapshot,
        clone_of,
        ..wanted(&class, requirement, settings)?
    };
    Ok((new, class))
}

/// Whether the filesystems that are asked for can be made and mounted so. It is the node that does it, when the volume is long
/// bound; so it is told here.
pub(super) fn mounts_fit(capabilities: &[Capability], class: &Class) -> Result<(), Status> {
    let default = class.fs_type.unwrap_or_default();
    capability::options_fit(capabilities, default).map_err(|e| request::invalid(&e))?;
    for (filesystem, _) in capability::mounts(capabilities, default) {
        class.makes(filesystem)?;
    }
    Ok(())
}

/// What GetCapacity asks about: a volume of any name and size.
pub(super) fn of_class(
    request: &proto::GetCapacityRequest,
    settings: &Settings,
) -> Result<NewDisk, Status> {
    if !request.volume_capabilities.is_empty() {
        capability::check_all(&request.volume_capabilities).map_err(|e| request::invalid(&e))?;
    }
    let class = Class::read(&request.parameters)?;
    let requirement = request.accessible_topology.as_ref();
    let requirement = requirement.map(|topology| proto::TopologyRequirement {
        requisite: vec![topology.clone()],
        preferred: Vec::new(),
    });
    Ok(NewDisk {
        // They bound the size and not what there is.
        provisioned_iops: 0,
        bursting: false,
        ..wanted(&class, requirement.as_ref(), settings)?
    })
}

/// All that class and topology say of a disk, which has no name or size yet.
fn wanted(
    class: &Class,
    requirement: Option<&proto::TopologyRequirement>,
    settings: &Settings,
) -> Result<NewDisk, Status> {
    if let Some(region) = class
        .region
        .as_ref()
        .filter(|region| **region != settings.region)
    {
        return Err(Status::invalid_argument(format!(
            "parameter \"regionId\" has value {:?}; allowed: {}, the driver's own region",
            region.as_str(),
            settings.region
        )));
    }
    let regional = class.categories.iter().any(Category::is_regional);
    Ok(NewDisk {
        name: String::new(),
        size: SizeRange::default(),
        categories: class.categories.clone(),
        levels: class.levels.clone(),
        places: zones::choose(requirement, &class.zones, settings.zone.as_ref(), regional)?,
        snapshot: None,
        clone_of: None,
        encrypted: class.encrypted,
        kms_key: class.kms_key.clone(),
        provisioned_iops: class.provisioned_iops,
        bursting: class.bursting,
        multi_attach: class.multi_attach,
        resource_group: class.resource_group.clone(),
        tags: class.tags.clone(),
        origin: class.origin.clone(),
    })
}

/// The snapshot or the volume whose content is wanted; neither is a blank disk.
fn source(
    source: Option<&proto::VolumeContentSource>,
) -> Result<(Option<SnapshotId>, Option<DiskId>), Status> {
    match source.map(|source| &source.r#type) {
        None => Ok((None, None)),
        Some(Some(Type::Snapshot(snapshot))) => request::id(
            "volume_content_source.snapshot.snapshot_id",
            &snapshot.snapshot_id,
        )
        .map(|id| (Some(id), None)),
        Some(Some(Type::Volume(volume))) => {
            let field = "volume_content_source.volume.volume_id";
            request::id(field, &volume.volume_id).map(|id| (None, Some(id)))
        }
        Some(None) => Err(Status::invalid_argument(
            "volume_content_source names neither snapshot nor volume",
        )),
    }
}

impl Class {
    /// What the node must know of the class.
    fn context(&self) -> HashMap<String, String> {
        let mut entries = HashMap::new();
        if let Some(fs_type) = self.fs_type {
            entries.insert(context::FS_TYPE.to_owned(), fs_type.to_string());
        }
        if self.read_only {
            entries.insert(context::READ_ONLY.to_owned(), "true".to_owned());
        }
        if self.multi_attach {
            entries.insert(context::MULTI_ATTACH.to_owned(), "true".to_owned());
        }
        let tuning = self.tuning.entries();
        entries.extend(
            tuning
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value)),
        );
        entries
    }
}
