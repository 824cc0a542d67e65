use std::collections::HashMap;

use jiff::Timestamp;

use crate::csi::proto;
use crate::model::{Disk, Snapshot, tag, topology};

pub(super) fn published_nodes(disk: &Disk) -> Vec<String> {
    disk.attachments.iter().map(ToString::to_string).collect()
}

pub(super) fn volume(disk: &Disk) -> proto::Volume {
    proto::Volume {
        capacity_bytes: disk.size.bytes().to_i64(),
        volume_id: disk.id.to_string(),
        volume_context: HashMap::new(),
        content_source: content_source(disk),
        accessible_topology: topology(disk, false),
    }
}

/// The topology from which a disk is accessible: its zone and, if nodes report their categories, its category.
///
/// A regional disk has no zone. The region label of nodes is not reliable, and the requested zones may be only
/// that of the first node, to which the volume would be bound permanently. So a regional disk has only its
/// category, or no topology: all nodes of the driver are in its region.
pub(super) fn topology(disk: &Disk, with_category: bool) -> Vec<proto::Topology> {
    let zones = disk.zone.iter();
    let zone = zones.map(|zone| (topology::ZONE_KEY.to_owned(), zone.to_string()));
    let category = (topology::category_key(&disk.category), topology::SUPPORTED.to_owned());
    let segments: HashMap<_, _> = zone.chain(with_category.then_some(category)).collect();
    if segments.is_empty() {
        return Vec::new();
    }
    vec![proto::Topology { segments }]
}

pub(super) fn snapshot(snapshot: &Snapshot) -> proto::Snapshot {
    let source = snapshot.source_disk.as_ref();
    proto::Snapshot {
        size_bytes: snapshot.source_size.bytes().to_i64(),
        snapshot_id: snapshot.id.to_string(),
        source_volume_id: source.map(ToString::to_string).unwrap_or_default(),
        creation_time: snapshot.created.map(timestamp),
        ready_to_use: snapshot.available,
        group_snapshot_id: tag::group_of(snapshot).map(|id| id.to_string()).unwrap_or_default(),
        // Empty: a snapshot is usable from every zone of the region.
        accessible_topology: Vec::new(),
    }
}

pub(super) fn timestamp(time: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
    }
}

/// The source of the disk. The source of a clone is its volume: the intermediate snapshot has been deleted.
fn content_source(disk: &Disk) -> Option<proto::VolumeContentSource> {
    use proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
    let source = match disk.tags.get(tag::CLONE_OF) {
        Some(volume) => Type::Volume(VolumeSource {
            volume_id: volume.clone(),
        }),
        None => Type::Snapshot(SnapshotSource {
            snapshot_id: disk.source_snapshot.as_ref()?.to_string(),
        }),
    };
    Some(proto::VolumeContentSource { r#type: Some(source) })
}
