//! The messages of the sidecars.

use std::collections::HashMap;

use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use diskplugin::csi::proto::volume_content_source::{Type, VolumeSource};
use diskplugin::csi::proto::{
    CapacityRange, ControllerExpandVolumeRequest, ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest,
    CreateSnapshotRequest, CreateVolumeRequest, DeleteSnapshotRequest, DeleteVolumeRequest, VolumeCapability,
    VolumeContentSource,
};

fn capability() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
        access_type: Some(AccessType::Mount(MountVolume::default())),
    }
}

fn range(gib: i64) -> Option<CapacityRange> {
    Some(CapacityRange {
        required_bytes: gib << 30,
        limit_bytes: 0,
    })
}

pub(crate) fn volume(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: range(20),
        volume_capabilities: vec![capability()],
        parameters: HashMap::from([("type".to_owned(), "cloud_essd".to_owned())]),
        ..Default::default()
    }
}

pub(crate) fn from_volume(id: &str) -> VolumeContentSource {
    VolumeContentSource {
        r#type: Some(Type::Volume(VolumeSource {
            volume_id: id.to_owned(),
        })),
    }
}

pub(crate) fn publication(id: &str, node: &str) -> ControllerPublishVolumeRequest {
    ControllerPublishVolumeRequest {
        volume_id: id.to_owned(),
        node_id: node.to_owned(),
        volume_capability: Some(capability()),
        ..Default::default()
    }
}

pub(crate) fn unpublication(id: &str, node: &str) -> ControllerUnpublishVolumeRequest {
    ControllerUnpublishVolumeRequest {
        volume_id: id.to_owned(),
        node_id: node.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn expansion(id: &str, gib: i64) -> ControllerExpandVolumeRequest {
    ControllerExpandVolumeRequest {
        volume_id: id.to_owned(),
        capacity_range: range(gib),
        volume_capability: Some(capability()),
        ..Default::default()
    }
}

pub(crate) fn snapshot(name: &str, volume: &str) -> CreateSnapshotRequest {
    CreateSnapshotRequest {
        name: name.to_owned(),
        source_volume_id: volume.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn snapshot_deletion(id: &str) -> DeleteSnapshotRequest {
    DeleteSnapshotRequest {
        snapshot_id: id.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn deletion(id: &str) -> DeleteVolumeRequest {
    DeleteVolumeRequest {
        volume_id: id.to_owned(),
        ..Default::default()
    }
}
