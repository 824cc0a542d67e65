//! Valid requests to the controller, for tests to modify.

use std::collections::HashMap;

use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use diskplugin::csi::proto::{
    CapacityRange, ControllerExpandVolumeRequest, ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest,
    CreateSnapshotRequest, CreateVolumeRequest, DeleteSnapshotRequest, DeleteVolumeRequest, Topology,
    TopologyRequirement, VolumeCapability, VolumeContentSource,
};

/// A range in bytes from GiB; 0 is unset.
pub(crate) fn range(required: i64, limit: i64) -> CapacityRange {
    CapacityRange {
        required_bytes: required << 30,
        limit_bytes: limit << 30,
    }
}

pub(crate) fn capability(mode: Mode, access: Option<AccessType>) -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: mode.into() }),
        access_type: access,
    }
}

pub(crate) fn mount() -> VolumeCapability {
    let access = AccessType::Mount(MountVolume::default());
    capability(Mode::SingleNodeWriter, Some(access))
}

pub(crate) fn block() -> VolumeCapability {
    let access = AccessType::Block(BlockVolume::default());
    capability(Mode::SingleNodeWriter, Some(access))
}

/// 20 GiB of ESSD with a filesystem.
pub(crate) fn new_volume(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(range(20, 0)),
        volume_capabilities: vec![mount()],
        parameters: parameters(&[("type", "cloud_essd")]),
        ..Default::default()
    }
}

pub(crate) fn deletion(volume: &str) -> DeleteVolumeRequest {
    DeleteVolumeRequest {
        volume_id: volume.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn publication(volume: &str, node: &str) -> ControllerPublishVolumeRequest {
    ControllerPublishVolumeRequest {
        volume_id: volume.to_owned(),
        node_id: node.to_owned(),
        volume_capability: Some(mount()),
        ..Default::default()
    }
}

pub(crate) fn unpublication(volume: &str, node: &str) -> ControllerUnpublishVolumeRequest {
    ControllerUnpublishVolumeRequest {
        volume_id: volume.to_owned(),
        node_id: node.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn expansion(volume: &str, size: CapacityRange) -> ControllerExpandVolumeRequest {
    ControllerExpandVolumeRequest {
        volume_id: volume.to_owned(),
        capacity_range: Some(size),
        volume_capability: Some(mount()),
        ..Default::default()
    }
}

pub(crate) fn new_snapshot(name: &str, volume: &str) -> CreateSnapshotRequest {
    CreateSnapshotRequest {
        name: name.to_owned(),
        source_volume_id: volume.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn snapshot_deletion(snapshot: &str) -> DeleteSnapshotRequest {
    DeleteSnapshotRequest {
        snapshot_id: snapshot.to_owned(),
        ..Default::default()
    }
}

pub(crate) fn from_snapshot(snapshot: &str) -> VolumeContentSource {
    let snapshot_id = snapshot.to_owned();
    VolumeContentSource {
        r#type: Some(Type::Snapshot(SnapshotSource { snapshot_id })),
    }
}

pub(crate) fn from_volume(volume: &str) -> VolumeContentSource {
    let volume_id = volume.to_owned();
    VolumeContentSource {
        r#type: Some(Type::Volume(VolumeSource { volume_id })),
    }
}

pub(crate) fn parameters(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

pub(crate) fn of_zone(zone: &str) -> Topology {
    Topology {
        segments: parameters(&[("topology.kubernetes.io/zone", zone)]),
    }
}

/// A topology of zones by the last letter of their names.
pub(crate) fn topology(requisite: &str, preferred: &str) -> TopologyRequirement {
    let zones = |letters: &str| -> Vec<Topology> {
        let zone = |letter| of_zone(&format!("cn-beijing-{letter}"));
        letters.chars().map(zone).collect()
    };
    TopologyRequirement {
        requisite: zones(requisite),
        preferred: zones(preferred),
    }
}
