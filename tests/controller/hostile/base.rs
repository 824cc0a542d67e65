//! Valid requests, so that a rejection is due to the one field that a test has changed. Together they have every field.

use diskplugin::csi::proto::group_controller_server::GroupController;
use diskplugin::csi::proto::volume_capability::MountVolume;
use prost_reflect::{DynamicMessage, ReflectMessage};

use crate::common::request::{deletion, expansion, snapshot_deletion, unpublication};
use crate::hostile::rpc::{call, new_stage, request};
use crate::service::kit::{
    self, AccessType, CreateVolumeRequest, Mode, Request, Stage, block, capability, from_snapshot, from_volume,
    new_snapshot, new_volume, of_zone, parameters as map, proto, publication, range, topology,
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
    let secrets = map(&[("password", "hush")]);
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
    macro_rules! with_secrets {
        ($rpc:literal $message:expr) => {
            let mut message = $message;
            message.secrets.clone_from(&secrets);
            base!($rpc message);
        };
    }
    let (volume_id, snapshot_id) = (ids.volume.clone(), ids.snapshot.clone());
    let (group_snapshot_id, snapshot_ids) = (ids.group.clone(), vec![ids.member.clone()]);
    let create = proto::CreateVolumeRequest {
        volume_capabilities: vec![mount()],
        accessibility_requirements: Some(topology("a", "a")),
        ..new_volume("pvc-1")
    };
    with_secrets!("CreateVolume" create.clone());
    with_secrets!("CreateVolume" proto::CreateVolumeRequest {
        volume_capabilities: vec![block()],
        ..create.clone()
    });
    for source in [from_snapshot(&snapshot_id), from_volume(&volume_id)] {
        with_secrets!("CreateVolume" proto::CreateVolumeRequest {
            volume_content_source: Some(source),
            ..create.clone()
        });
    }
    with_secrets!("DeleteVolume" deletion(&volume_id));
    for capability in [mount(), block()] {
        with_secrets!("ControllerPublishVolume" proto::ControllerPublishVolumeRequest {
            volume_capability: Some(capability.clone()),
            volume_context: map(&[("fsType", "ext4")]),
            ..publication(&volume_id, kit::NODE)
        });
        with_secrets!("ValidateVolumeCapabilities" proto::ValidateVolumeCapabilitiesRequest {
            volume_id: volume_id.clone(),
            volume_context: map(&[("fsType", "ext4")]),
            volume_capabilities: vec![capability.clone()],
            parameters: map(&[("type", "cloud_essd")]),
            ..Default::default()
        });
        base!("GetCapacity" proto::GetCapacityRequest {
            volume_capabilities: vec![capability.clone()],
            parameters: map(&[("type", "cloud_essd")]),
            accessible_topology: Some(of_zone("cn-beijing-a")),
        });
        with_secrets!("ControllerExpandVolume" proto::ControllerExpandVolumeRequest {
            volume_capability: Some(capability),
            ..expansion(&volume_id, range(20, 0))
        });
    }
    with_secrets!("ControllerUnpublishVolume" unpublication(&volume_id, kit::NODE));
    base!("ListVolumes" proto::ListVolumesRequest {
        max_entries: 5,
        starting_token: String::new(),
    });
    base!("ControllerGetCapabilities" proto::ControllerGetCapabilitiesRequest {});
    with_secrets!("CreateSnapshot" proto::CreateSnapshotRequest {
        accessibility_requirements: Some(topology("a", "a")),
        ..new_snapshot("snap-1", &volume_id)
    });
    with_secrets!("DeleteSnapshot" snapshot_deletion(&snapshot_id));
    with_secrets!("ListSnapshots" proto::ListSnapshotsRequest {
        max_entries: 5,
        source_volume_id: volume_id.clone(),
        ..Default::default()
    });
    with_secrets!("GetSnapshot" proto::GetSnapshotRequest {
        snapshot_id,
        ..Default::default()
    });
    base!("ControllerGetVolume" proto::ControllerGetVolumeRequest {
        volume_id: volume_id.clone(),
    });
    with_secrets!("ControllerGetVolumeHealth" proto::ControllerGetVolumeHealthRequest {
        volume_id: volume_id.clone(),
        ..Default::default()
    });
    with_secrets!("ControllerListVolumeHealth" proto::ControllerListVolumeHealthRequest {
        max_entries: 5,
        ..Default::default()
    });
    base!("GroupControllerGetCapabilities" proto::GroupControllerGetCapabilitiesRequest {});
    with_secrets!("CreateVolumeGroupSnapshot" proto::CreateVolumeGroupSnapshotRequest {
        name: "group-1".to_owned(),
        source_volume_ids: vec![volume_id.clone()],
        ..Default::default()
    });
    with_secrets!("DeleteVolumeGroupSnapshot" proto::DeleteVolumeGroupSnapshotRequest {
        group_snapshot_id: group_snapshot_id.clone(),
        snapshot_ids: snapshot_ids.clone(),
        ..Default::default()
    });
    with_secrets!("GetVolumeGroupSnapshot" proto::GetVolumeGroupSnapshotRequest {
        group_snapshot_id,
        snapshot_ids,
        ..Default::default()
    });
    with_secrets!("ControllerModifyVolume" proto::ControllerModifyVolumeRequest {
        volume_id,
        ..Default::default()
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
