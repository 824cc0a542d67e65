//! Requests that are right, so that whatever is refused is refused for the one field that a test has
//! spoilt. Together they have every field.

use std::collections::HashMap;

use diskplugin::csi::proto;
use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::group_controller_server::GroupController;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use prost_reflect::{DynamicMessage, ReflectMessage};
use tonic::Request;

use crate::hostile::rpc::{Stage, request};

/// A request of an RPC.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) rpc: &'static str,
    pub(crate) message: DynamicMessage,
}

fn map(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

fn mount() -> proto::VolumeCapability {
    proto::VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: "ext4".to_owned(),
            mount_flags: vec!["noatime".to_owned()],
            volume_mount_group: String::new(),
        })),
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
    }
}

fn block() -> proto::VolumeCapability {
    proto::VolumeCapability {
        access_type: Some(AccessType::Block(BlockVolume {})),
        ..mount()
    }
}

fn topology() -> proto::Topology {
    proto::Topology {
        segments: map(&[("topology.kubernetes.io/zone", "cn-beijing-a")]),
    }
}

fn source(content: Type) -> proto::VolumeContentSource {
    proto::VolumeContentSource { r#type: Some(content) }
}

/// What is there, so that an id alone is no reason to refuse.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    volume: String,
    snapshot: String,
    group: String,
    /// The group's only snapshot.
    member: String,
}

/// Makes a volume, a snapshot of it, and a group that has another.
pub(crate) async fn ids(stage: &Stage) -> Ids {
    let new = proto::CreateVolumeRequest {
        name: "source".to_owned(),
        volume_capabilities: vec![mount()],
        parameters: map(&[("type", "cloud_essd")]),
        ..proto::CreateVolumeRequest::default()
    };
    let answer = stage.service.create_volume(Request::new(new)).await;
    let volume = answer.unwrap().into_inner().volume.unwrap().volume_id;
    let new = proto::CreateSnapshotRequest {
        name: "cut".to_owned(),
        source_volume_id: volume.clone(),
        ..proto::CreateSnapshotRequest::default()
    };
    let answer = stage.service.create_snapshot(Request::new(new)).await;
    let snapshot = answer.unwrap().into_inner().snapshot.unwrap().snapshot_id;
    let new = proto::CreateVolumeGroupSnapshotRequest {
        name: "cuts".to_owned(),
        source_volume_ids: vec![volume.clone()],
        ..proto::CreateVolumeGroupSnapshotRequest::default()
    };
    let answer = stage.service.create_volume_group_snapshot(Request::new(new));
    let group = answer.await.unwrap().into_inner().group_snapshot.unwrap();
    Ids {
        volume,
        snapshot,
        group: group.group_snapshot_id,
        member: group.snapshots[0].snapshot_id.clone(),
    }
}

/// All of them, on the stage of these ids.
pub(crate) fn all(ids: &Ids) -> Vec<Base> {
    let mut bases = Vec::new();
    macro_rules! base {
        ($rpc:literal $message:expr) => {
            let mut dynamic = DynamicMessage::new(request($rpc));
            dynamic.transcode_from(&$message).expect("the types are one");
            bases.push(Base {
                rpc: $rpc,
                message: dynamic,
            });
        };
    }
    let volume_id = ids.volume.clone();
    let snapshot_id = ids.snapshot.clone();
    let capacity_range = Some(proto::CapacityRange {
        required_bytes: 20 << 30,
        limit_bytes: 0,
    });
    let secrets = map(&[("password", "hush")]);
    let accessible = proto::TopologyRequirement {
        requisite: vec![topology()],
        preferred: vec![topology()],
    };
    let create = proto::CreateVolumeRequest {
        name: "pvc-1".to_owned(),
        capacity_range,
        volume_capabilities: vec![mount()],
        parameters: map(&[("type", "cloud_essd")]),
        secrets: secrets.clone(),
        accessibility_requirements: Some(accessible.clone()),
        ..proto::CreateVolumeRequest::default()
    };
    let restore = source(Type::Snapshot(SnapshotSource {
        snapshot_id: snapshot_id.clone(),
    }));
    let clone = source(Type::Volume(VolumeSource {
        volume_id: volume_id.clone(),
    }));
    base!("CreateVolume" create);
    base!("CreateVolume" proto::CreateVolumeRequest {
        volume_capabilities: vec![block()],
        ..create.clone()
    });
    base!("CreateVolume" proto::CreateVolumeRequest {
        volume_content_source: Some(restore),
        ..create.clone()
    });
    base!("CreateVolume" proto::CreateVolumeRequest {
        volume_content_source: Some(clone),
        ..create.clone()
    });
    base!("DeleteVolume" proto::DeleteVolumeRequest {
        volume_id: volume_id.clone(),
        secrets: secrets.clone(),
    });
    for capability in [mount(), block()] {
        base!("ControllerPublishVolume" proto::ControllerPublishVolumeRequest {
            volume_id: volume_id.clone(),
            node_id: "i-one".to_owned(),
            volume_capability: Some(capability.clone()),
            secrets: secrets.clone(),
            volume_context: map(&[("fsType", "ext4")]),
            ..proto::ControllerPublishVolumeRequest::default()
        });
        base!("ValidateVolumeCapabilities" proto::ValidateVolumeCapabilitiesRequest {
            volume_id: volume_id.clone(),
            volume_context: map(&[("fsType", "ext4")]),
            volume_capabilities: vec![capability.clone()],
            parameters: map(&[("type", "cloud_essd")]),
            secrets: secrets.clone(),
            ..proto::ValidateVolumeCapabilitiesRequest::default()
        });
        base!("GetCapacity" proto::GetCapacityRequest {
            volume_capabilities: vec![capability.clone()],
            parameters: map(&[("type", "cloud_essd")]),
            accessible_topology: Some(topology()),
        });
        base!("ControllerExpandVolume" proto::ControllerExpandVolumeRequest {
            volume_id: volume_id.clone(),
            capacity_range,
            secrets: secrets.clone(),
            volume_capability: Some(capability),
        });
    }
    base!("ControllerUnpublishVolume" proto::ControllerUnpublishVolumeRequest {
        volume_id: volume_id.clone(),
        node_id: "i-one".to_owned(),
        secrets: secrets.clone(),
    });
    base!("ListVolumes" proto::ListVolumesRequest {
        max_entries: 5,
        starting_token: String::new(),
    });
    base!("ControllerGetCapabilities" proto::ControllerGetCapabilitiesRequest {});
    base!("CreateSnapshot" proto::CreateSnapshotRequest {
        source_volume_id: volume_id.clone(),
        name: "snap-1".to_owned(),
        secrets: secrets.clone(),
        accessibility_requirements: Some(accessible),
        ..proto::CreateSnapshotRequest::default()
    });
    base!("DeleteSnapshot" proto::DeleteSnapshotRequest {
        snapshot_id: snapshot_id.clone(),
        secrets: secrets.clone(),
    });
    base!("ListSnapshots" proto::ListSnapshotsRequest {
        max_entries: 5,
        source_volume_id: volume_id.clone(),
        secrets: secrets.clone(),
        ..proto::ListSnapshotsRequest::default()
    });
    base!("GetSnapshot" proto::GetSnapshotRequest {
        snapshot_id,
        secrets: secrets.clone(),
    });
    base!("ControllerGetVolume" proto::ControllerGetVolumeRequest {
        volume_id: volume_id.clone(),
    });
    base!("ControllerGetVolumeHealth" proto::ControllerGetVolumeHealthRequest {
        volume_id: volume_id.clone(),
        secrets: secrets.clone(),
    });
    base!("ControllerListVolumeHealth" proto::ControllerListVolumeHealthRequest {
        max_entries: 5,
        secrets: secrets.clone(),
        ..proto::ControllerListVolumeHealthRequest::default()
    });
    base!("GroupControllerGetCapabilities" proto::GroupControllerGetCapabilitiesRequest {});
    base!("CreateVolumeGroupSnapshot" proto::CreateVolumeGroupSnapshotRequest {
        name: "group-1".to_owned(),
        source_volume_ids: vec![volume_id.clone()],
        secrets: secrets.clone(),
        ..proto::CreateVolumeGroupSnapshotRequest::default()
    });
    base!("DeleteVolumeGroupSnapshot" proto::DeleteVolumeGroupSnapshotRequest {
        group_snapshot_id: ids.group.clone(),
        snapshot_ids: vec![ids.member.clone()],
        secrets: secrets.clone(),
    });
    base!("GetVolumeGroupSnapshot" proto::GetVolumeGroupSnapshotRequest {
        group_snapshot_id: ids.group.clone(),
        snapshot_ids: vec![ids.member.clone()],
        secrets: secrets.clone(),
    });
    base!("ControllerModifyVolume" proto::ControllerModifyVolumeRequest {
        volume_id,
        secrets,
        mutable_parameters: HashMap::new(),
    });
    bases
}

/// All of them, each served.
pub(crate) async fn served() -> Vec<Base> {
    let mut served = Vec::new();
    let stage = Stage::new();
    let known = ids(&stage).await;
    for base in all(&known) {
        let stage = Stage::new();
        assert_eq!(ids(&stage).await, known, "the seed is the same");
        match stage.call(base.rpc, &base.message).await.answer {
            Ok(_) => served.push(base),
            Err(status) => panic!("{base}: {status}"),
        }
    }
    served
}

/// The rpc and the message, for people.
impl std::fmt::Display for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.rpc, self.message.descriptor().name())
    }
}
