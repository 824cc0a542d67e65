//! Requests that are right, so that whatever is refused is refused for the one field that a test has
//! spoilt. Together they have every field.

use std::collections::HashMap;

use diskplugin::csi::proto;
use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use prost_reflect::{DynamicMessage, ReflectMessage};
use tonic::{Code, Request};

use crate::rpc::{Stage, request};

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
    proto::VolumeContentSource {
        r#type: Some(content),
    }
}

/// A volume and a snapshot of it, so that an id alone is no reason to refuse.
pub(crate) async fn ids(stage: &Stage) -> (String, String) {
    let new = proto::CreateVolumeRequest {
        name: "source".to_owned(),
        volume_capabilities: vec![mount()],
        parameters: map(&[("type", "cloud_essd")]),
        ..proto::CreateVolumeRequest::default()
    };
    let answer = stage.service.create_volume(Request::new(new)).await;
    let volume_id = answer.unwrap().into_inner().volume.unwrap().volume_id;
    let new = proto::CreateSnapshotRequest {
        name: "cut".to_owned(),
        source_volume_id: volume_id.clone(),
        ..proto::CreateSnapshotRequest::default()
    };
    let answer = stage.service.create_snapshot(Request::new(new)).await;
    let snapshot = answer.unwrap().into_inner().snapshot.unwrap();
    (volume_id, snapshot.snapshot_id)
}

/// All of them, on the stage of these ids.
pub(crate) fn all(volume: &str, snapshot: &str) -> Vec<Base> {
    let mut bases = Vec::new();
    macro_rules! base {
        ($rpc:literal $message:expr) => {
            let mut dynamic = DynamicMessage::new(request($rpc));
            dynamic
                .transcode_from(&$message)
                .expect("the types are one");
            bases.push(Base {
                rpc: $rpc,
                message: dynamic,
            });
        };
    }
    let volume_id = volume.to_owned();
    let snapshot_id = snapshot.to_owned();
    let capacity_range = Some(proto::CapacityRange {
        required_bytes: 20 << 30,
        limit_bytes: 0,
    });
    let secrets = map(&[("password", "hush")]);
    let create = proto::CreateVolumeRequest {
        name: "pvc-1".to_owned(),
        capacity_range,
        volume_capabilities: vec![mount()],
        parameters: map(&[("type", "cloud_essd")]),
        secrets: secrets.clone(),
        accessibility_requirements: Some(proto::TopologyRequirement {
            requisite: vec![topology()],
            preferred: vec![topology()],
        }),
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
    base!("ControllerModifyVolume" proto::ControllerModifyVolumeRequest {
        volume_id,
        secrets,
        mutable_parameters: HashMap::new(),
    });
    bases
}

/// Those that are served: the others are told, and spoil nothing.
pub(crate) async fn served() -> Vec<Base> {
    let mut served = Vec::new();
    let stage = Stage::new();
    let (volume, snapshot) = ids(&stage).await;
    for base in all(&volume, &snapshot) {
        let stage = Stage::new();
        let own = ids(&stage).await;
        assert_eq!(
            own,
            (volume.clone(), snapshot.clone()),
            "the seed is the same"
        );
        match stage.call(base.rpc, &base.message).await.answer {
            Ok(_) => served.push(base),
            Err(status) if status.code() == Code::Unimplemented => {
                println!("NOT SERVED: {base}");
            }
            Err(status)
                if status
                    .message()
                    .contains("volume_content_source.volume is not") =>
            {
                println!("NOT SERVED: {base} of a volume");
            }
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
