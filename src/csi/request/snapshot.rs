use std::collections::BTreeSet;

use super::error::{Error, Result};
use super::field;
use super::page::{PageRequest, page};
use super::topology::{DriverLocation, Terms};
use crate::csi::param::snapshot::SnapshotClass;
use crate::csi::proto::{
    CreateSnapshotRequest, CreateVolumeGroupSnapshotRequest, DeleteVolumeGroupSnapshotRequest,
    GetVolumeGroupSnapshotRequest, ListSnapshotsRequest,
};
use crate::disk::{NewGroupSnapshot, NewSnapshot, SnapshotPurpose};
use crate::model::{DiskId, InvalidId, SnapshotGroupId, SnapshotId};

pub(crate) fn create(message: &CreateSnapshotRequest, location: &DriverLocation) -> Result<NewSnapshot> {
    field::required("source_volume_id", &message.source_volume_id)?;
    let name = field::name(&message.name)?;
    let class = SnapshotClass::read(&message.parameters)?;
    Terms::of(message.accessibility_requirements.as_ref()).admit(&location.region)?;
    Ok(NewSnapshot {
        name,
        source: field::id("source_volume_id", &message.source_volume_id)?,
        retention_days: class.retention_days,
        resource_group: class.resource_group,
        tags: class.tags,
        purpose: SnapshotPurpose::Snapshot,
    })
}

#[derive(Debug)]
pub(crate) struct ListSnapshots {
    pub(crate) page: PageRequest,
    pub(crate) snapshot: Option<SnapshotId>,
    pub(crate) source: Option<DiskId>,
}

/// `None` if a filter can match nothing (CSI: not an error).
pub(crate) fn list(message: &ListSnapshotsRequest) -> Result<Option<ListSnapshots>> {
    let page = page(message.max_entries, &message.starting_token)?;
    let filters = field::optional_id(&message.snapshot_id).zip(field::optional_id(&message.source_volume_id));
    Ok(filters.map(|(snapshot, source)| ListSnapshots { page, snapshot, source }))
}

pub(crate) fn create_group(message: &CreateVolumeGroupSnapshotRequest) -> Result<NewGroupSnapshot> {
    const SOURCES: &str = "source_volume_ids";
    let name = field::name(&message.name)?;
    let class = SnapshotClass::read_of_group(&message.parameters)?;
    if message.source_volume_ids.is_empty() {
        return Err(Error::missing(SOURCES));
    }
    let mut sources = BTreeSet::new();
    for id in &message.source_volume_ids {
        if !sources.insert(field::id::<DiskId>(SOURCES, id)?) {
            return Err(Error::unsupported(SOURCES, format!("names {id:?} twice")));
        }
    }
    Ok(NewGroupSnapshot {
        name,
        sources,
        resource_group: class.resource_group,
        tags: class.tags,
    })
}

/// `None` if no group can have the ID.
pub(crate) fn delete_group(
    message: &DeleteVolumeGroupSnapshotRequest,
) -> Result<Option<(SnapshotGroupId, BTreeSet<SnapshotId>)>> {
    let group = field::id_to_remove("group_snapshot_id", &message.group_snapshot_id)?;
    let with_members = |group| Ok((group, members(&message.snapshot_ids)?));
    group.map(with_members).transpose()
}

pub(crate) fn get_group(message: &GetVolumeGroupSnapshotRequest) -> Result<(SnapshotGroupId, BTreeSet<SnapshotId>)> {
    let group = field::id("group_snapshot_id", &message.group_snapshot_id)?;
    Ok((group, members(&message.snapshot_ids)?))
}

fn members(ids: &[String]) -> Result<BTreeSet<SnapshotId>> {
    let parse = |id: &String| {
        let id = id.parse();
        id.map_err(|invalid: InvalidId| Error::malformed("snapshot_ids", &invalid))
    };
    ids.iter().map(parse).collect()
}
