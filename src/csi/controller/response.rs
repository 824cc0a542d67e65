use std::collections::HashMap;

use jiff::Timestamp;
use tonic::Status;

use super::service::Service;
use crate::csi::proto;
use crate::csi::proto::controller_service_capability::rpc::Type;
use crate::csi::proto::controller_service_capability::{Rpc, Type as Capability};
use crate::csi::request::ParsedCall;
use crate::disk::{HealthIssue, Severity};
use crate::model::{Disk, DiskId, Snapshot, tag, topology};

const CAPABILITIES: &[Type] = &[
    Type::CreateDeleteVolume,
    Type::PublishUnpublishVolume,
    Type::ListVolumes,
    Type::GetCapacity,
    Type::CreateDeleteSnapshot,
    Type::CloneVolume,
    Type::ListSnapshots,
    Type::GetSnapshot,
    Type::ExpandVolume,
    Type::ModifyVolume,
    Type::GetVolume,
    Type::GetVolumeHealth,
    Type::ListVolumeHealth,
    Type::SingleNodeMultiWriter,
    Type::PublishReadonly,
];

pub(super) async fn capabilities(
    service: &Service,
    _: ParsedCall<()>,
) -> Result<proto::ControllerGetCapabilitiesResponse, Status> {
    let capability = |rpc: Type| proto::ControllerServiceCapability {
        r#type: Some(Capability::Rpc(Rpc { r#type: rpc.into() })),
    };
    let published = service.lists_published_nodes.then_some(Type::ListVolumesPublishedNodes);
    let all = CAPABILITIES.iter().copied().chain(published);
    Ok(proto::ControllerGetCapabilitiesResponse {
        capabilities: all.map(capability).collect(),
    })
}

pub(super) fn volume(disk: &Disk, context: HashMap<String, String>) -> proto::Volume {
    proto::Volume {
        capacity_bytes: disk.size.bytes().to_i64(),
        volume_id: disk.id.to_string(),
        volume_context: context,
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
    let zone = disk
        .zone
        .iter()
        .map(|zone| (topology::ZONE_KEY.to_owned(), zone.to_string()));
    let category = (topology::category_key(&disk.category), topology::SUPPORTED.to_owned());
    let segments: HashMap<_, _> = zone.chain(with_category.then_some(category)).collect();
    if segments.is_empty() {
        return Vec::new();
    }
    vec![proto::Topology { segments }]
}

pub(super) fn health(disk: &DiskId, issues: &[HealthIssue]) -> proto::VolumeHealth {
    let entry = |issue: &HealthIssue| proto::volume_health::VolumeHealthEntry {
        status: match issue.severity {
            Severity::Degraded => proto::VolumeHealthErrorType::Degraded,
            Severity::Inaccessible => proto::VolumeHealthErrorType::Inaccessible,
        }
        .into(),
        reason: issue.reason.clone(),
        message: issue.message.clone(),
    };
    proto::VolumeHealth {
        volume_id: disk.to_string(),
        health_statuses: issues.iter().map(entry).collect(),
    }
}

pub(crate) fn snapshot(snapshot: &Snapshot) -> proto::Snapshot {
    proto::Snapshot {
        size_bytes: snapshot.source_size.bytes().to_i64(),
        snapshot_id: snapshot.id.to_string(),
        source_volume_id: snapshot
            .source_disk
            .as_ref()
            .map(ToString::to_string)
            .unwrap_or_default(),
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
