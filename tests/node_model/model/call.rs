//! CSI calls, as kubelet makes them, and their outcome.

use diskplugin::csi::proto::node_server::Node as _;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::{
    CapacityRange, NodeExpandVolumeRequest, NodeGetVolumeStatsRequest, NodePublishVolumeRequest,
    NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, VolumeCapability,
};
use tonic::{Code, Status};

use crate::common::csi::within;
use crate::model::machine::{LONG_TIMEOUT, Machine, SHORT_TIMEOUT};
use crate::model::world::{Access, Call, FsType, Outcome, World};

impl Machine {
    /// Each attempt has four times as much time as the one before.
    pub(crate) fn call(&mut self, call: Call, after: &World, attempt: u32) -> Result<(), Status> {
        self.restart_if_configured();
        let time = match after.outcome {
            Some(Outcome::DeadlineExceeded) => SHORT_TIMEOUT * 4_u32.pow(attempt),
            _ => LONG_TIMEOUT,
        };
        let id = |volume| format!("d-{}", self.serial(volume));
        let path = |mount_point| self.mount_point(mount_point).to_str().unwrap().to_owned();
        let requested = |volume: usize, access, single| Some(capability(after.volumes[volume].fs, access, single));
        let service = &self.service;
        self.runtime.block_on(async {
            match call {
                Call::Stage {
                    volume,
                    staging,
                    access,
                    read_only,
                } => {
                    let mut capability = requested(volume, access, false);
                    if let (true, Some(capability)) = (read_only, &mut capability) {
                        let mode = Mode::SingleNodeReaderOnly.into();
                        capability.access_mode = Some(AccessMode { mode });
                    }
                    let request = NodeStageVolumeRequest {
                        volume_id: id(volume),
                        staging_target_path: path(staging),
                        volume_capability: capability,
                        ..NodeStageVolumeRequest::default()
                    };
                    service.node_stage_volume(within(time, request)).await.map(drop)
                }
                Call::Publish {
                    volume,
                    staging,
                    target,
                    access,
                    read_only,
                    single,
                } => {
                    let request = NodePublishVolumeRequest {
                        volume_id: id(volume),
                        staging_target_path: path(staging),
                        target_path: path(target),
                        volume_capability: requested(volume, access, single),
                        readonly: read_only,
                        ..NodePublishVolumeRequest::default()
                    };
                    service.node_publish_volume(within(time, request)).await.map(drop)
                }
                Call::Unpublish { volume, target } => {
                    let request = NodeUnpublishVolumeRequest {
                        volume_id: id(volume),
                        target_path: path(target),
                    };
                    service.node_unpublish_volume(within(time, request)).await.map(drop)
                }
                Call::Unstage { volume, staging } => {
                    let request = NodeUnstageVolumeRequest {
                        volume_id: id(volume),
                        staging_target_path: path(staging),
                    };
                    service.node_unstage_volume(within(time, request)).await.map(drop)
                }
                Call::Expand { volume, mount_point } => {
                    let request = NodeExpandVolumeRequest {
                        volume_id: id(volume),
                        volume_path: path(mount_point),
                        capacity_range: Some(CapacityRange::default()),
                        ..NodeExpandVolumeRequest::default()
                    };
                    service.node_expand_volume(within(time, request)).await.map(drop)
                }
                Call::Stats { volume, mount_point } => {
                    let request = NodeGetVolumeStatsRequest {
                        volume_id: id(volume),
                        volume_path: path(mount_point),
                        ..NodeGetVolumeStatsRequest::default()
                    };
                    service.node_get_volume_stats(within(time, request)).await.map(drop)
                }
            }
        })
    }
}

fn capability(fs: FsType, access: Access, single: bool) -> VolumeCapability {
    let mount = |name: &str| {
        AccessType::Mount(MountVolume {
            fs_type: name.to_owned(),
            ..MountVolume::default()
        })
    };
    let mode = match single {
        true => Mode::SingleNodeSingleWriter,
        false => Mode::SingleNodeMultiWriter,
    };
    VolumeCapability {
        access_type: Some(match access {
            Access::Mount => mount(fs.name()),
            Access::MountOtherType => mount(fs.other()),
            Access::Block => AccessType::Block(BlockVolume {}),
        }),
        access_mode: Some(AccessMode { mode: mode.into() }),
    }
}

/// Whether the call failed because another process used the loop device.
pub(crate) fn is_loop_device_busy(status: &Status) -> bool {
    let text = status.message();
    // A loop device that is detached while in use fails requests until it is removed.
    let is_detaching = text.contains("cannot flush") && text.contains("Input/output error");
    is_detaching || text.contains("in use by the system") || text.contains("resource busy")
}

/// Whether the call has not ended at its deadline.
pub(crate) fn is_still_running(status: &Status) -> bool {
    status.code() == Code::Aborted
}

pub(crate) fn outcome(status: &Status) -> Outcome {
    match status.code() {
        Code::AlreadyExists => Outcome::AlreadyExists,
        Code::FailedPrecondition => Outcome::FailedPrecondition,
        Code::NotFound => Outcome::NotFound,
        Code::DeadlineExceeded => Outcome::DeadlineExceeded,
        Code::Internal => Outcome::Internal,
        code => panic!("unexpected code {code:?}: {status}"),
    }
}
