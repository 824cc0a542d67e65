//! Valid requests, so that a rejection is due to the one field that a test has changed. Together they have every field.

use diskplugin::csi::proto::group_controller_server::GroupController;
use diskplugin::csi::proto::volume_capability::MountVolume;
use prost_reflect::{DynamicMessage, ReflectMessage};

use crate::hostile::rpc::{call, new_stage, request};
use crate::service::kit::{
    self, AccessType, CreateVolumeRequest, HashMap, Mode, Request, Stage, block, capability, from_snapshot,
    from_volume, new_volume, parameters as map, proto, range,
};

/// A request of an RPC.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) rpc: &'static str,
    pub(crate) message: DynamicMessage,
}

fn mount() -> proto::VolumeCapability {
    let access = MountVolume {
        fs_type: "ext4".to_owned(),
        mount_flags: vec!["noatime".to_owned()],
        ..MountVolume::default()
    };
    capability(Mode::SingleNodeWriter, Some(AccessType::Mount(access)))
}

fn topology() -> proto::Topology {
    kit::topology("a", "").requisite.remove(0)
}

/// Existing resources, so that an ID alone is not a reason to reject a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ids {
    volume: String,
    snapshot: String,
    group: String,
    /// The group's only snapshot.
    member: String,
}

/// Creates a volume, a snapshot of it, and a group with another snapshot.
pub(crate) async fn ids(stage: &Stage) -> Ids {
    let new = CreateVolumeRequest {
        capacity_range: None,
        volume_capabilities: vec![mount()],
        ..new_volume("source")
    };
    let volume = stage.create(new).await.unwrap().volume_id;
    let snapshot = stage.snapshot("cut", &volume).await.unwrap().snapshot_id;
    let new = proto::CreateVolumeGroupSnapshotRequest {
        name: "cuts".to_owned(),
        source_volume_ids: vec![volume.clone()],
        ..Default::default()
    };
    let created = stage.service.create_volume_group_snapshot(Request::new(new)).await;
    let group = created.unwrap().into_inner().group_snapshot.unwrap();
    Ids {
        volume,
        snapshot,
        group: group.group_snapshot_id,
        member: group.snapshots[0].snapshot_id.clone(),
    }
}

/// All valid requests for these resources.
pub(crate) fn all(ids: &Ids) -> Vec<Base> {
    let mut bases = Vec::new();
    macro_rules! base {
        ($rpc:literal $message:expr) => {
            let mut dynamic = DynamicMessage::new(request($rpc));
            dynamic.transcode_from(&$message).expect("the types are equal");
            bases.push(Base {
                rpc: $rpc,
                message: dynamic,
            });
        };
    }
    let volume_id = ids.volume.clone();
    let snapshot_id = ids.snapshot.clone();
    let capacity_range = Some(range(20, 0));
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
        ..Default::default()
    };
    let restore = from_snapshot(&snapshot_id);
    let clone = from_volume(&volume_id);
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
            ..Default::default()
        });
        base!("ValidateVolumeCapabilities" proto::ValidateVolumeCapabilitiesRequest {
            volume_id: volume_id.clone(),
            volume_context: map(&[("fsType", "ext4")]),
            volume_capabilities: vec![capability.clone()],
            parameters: map(&[("type", "cloud_essd")]),
            secrets: secrets.clone(),
            ..Default::default()
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
        ..Default::default()
    });
    base!("DeleteSnapshot" proto::DeleteSnapshotRequest {
        snapshot_id: snapshot_id.clone(),
        secrets: secrets.clone(),
    });
    base!("ListSnapshots" proto::ListSnapshotsRequest {
        max_entries: 5,
        source_volume_id: volume_id.clone(),
        secrets: secrets.clone(),
        ..Default::default()
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
        ..Default::default()
    });
    base!("GroupControllerGetCapabilities" proto::GroupControllerGetCapabilitiesRequest {});
    base!("CreateVolumeGroupSnapshot" proto::CreateVolumeGroupSnapshotRequest {
        name: "group-1".to_owned(),
        source_volume_ids: vec![volume_id.clone()],
        secrets: secrets.clone(),
        ..Default::default()
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

/// The valid requests, each of which has succeeded.
pub(crate) async fn served() -> Vec<Base> {
    let mut served = Vec::new();
    let expected = ids(&new_stage()).await;
    for base in all(&expected) {
        let stage = new_stage();
        assert_eq!(ids(&stage).await, expected, "the seed is the same");
        match call(&stage, base.rpc, &base.message).await.response {
            Ok(_) => served.push(base),
            Err(status) => panic!("{base}: {status}"),
        }
    }
    served
}

impl std::fmt::Display for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.rpc, self.message.descriptor().name())
    }
}
