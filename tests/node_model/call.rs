//! A call over CSI, as kubelet would make it, and what its answer is to the model.

use std::time::Duration;

use diskplugin::csi::proto::node_server::Node as _;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::{
    CapacityRange, NodeExpandVolumeRequest, NodeGetVolumeStatsRequest, NodePublishVolumeRequest,
    NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, VolumeCapability,
};
use tonic::{Code, Request, Status};

use crate::machine::{AMPLE, BRIEF, Machine};
use crate::world::{Access, Answer, Call, Fs, World};

impl Machine {
    pub(crate) fn call(&mut self, call: Call, after: &World) -> Result<(), Status> {
        self.begin_call();
        let time = match after.answer {
            Some(Answer::Late) => BRIEF,
            _ => AMPLE,
        };
        let id = |volume| format!("d-{}", self.serial(volume));
        let path = |place| self.place(place).to_str().unwrap().to_owned();
        let wish = |volume: usize, access, single| {
            Some(capability(after.volumes[volume].fs, access, single))
        };
        let service = &self.service;
        self.runtime.block_on(async {
            match call {
                Call::Stage {
                    volume,
                    staging,
                    access,
                    read_only,
                } => {
                    let mut capability = wish(volume, access, false);
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
                    service
                        .node_stage_volume(timed(request, time))
                        .await
                        .map(drop)
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
                        volume_capability: wish(volume, access, single),
                        readonly: read_only,
                        ..NodePublishVolumeRequest::default()
                    };
                    service
                        .node_publish_volume(timed(request, time))
                        .await
                        .map(drop)
                }
                Call::Unpublish { volume, target } => {
                    let request = NodeUnpublishVolumeRequest {
                        volume_id: id(volume),
                        target_path: path(target),
                    };
                    service
                        .node_unpublish_volume(timed(request, time))
                        .await
                        .map(drop)
                }
                Call::Unstage { volume, staging } => {
                    let request = NodeUnstageVolumeRequest {
                        volume_id: id(volume),
                        staging_target_path: path(staging),
                    };
                    service
                        .node_unstage_volume(timed(request, time))
                        .await
                        .map(drop)
                }
                Call::Expand { volume, place } => {
                    let request = NodeExpandVolumeRequest {
                        volume_id: id(volume),
                        volume_path: path(place),
                        capacity_range: Some(CapacityRange::default()),
                        ..NodeExpandVolumeRequest::default()
                    };
                    service
                        .node_expand_volume(timed(request, time))
                        .await
                        .map(drop)
                }
                Call::Stats { volume, place } => {
                    let request = NodeGetVolumeStatsRequest {
                        volume_id: id(volume),
                        volume_path: path(place),
                        ..NodeGetVolumeStatsRequest::default()
                    };
                    service
                        .node_get_volume_stats(timed(request, time))
                        .await
                        .map(drop)
                }
            }
        })
    }
}

fn timed<T>(message: T, time: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(time);
    request
}

fn capability(fs: Fs, access: Access, single: bool) -> VolumeCapability {
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
            Access::WrongMount => mount(fs.other()),
            Access::Block => AccessType::Block(BlockVolume {}),
        }),
        access_mode: Some(AccessMode { mode: mode.into() }),
    }
}

/// Whether a device was taken by somebody else, who is not the node.
pub(crate) fn was_snatched(status: &Status) -> bool {
    let text = status.message();
    // A loop device that leaves with its last user fails requests until it has left.
    let leaves = text.contains("cannot flush") && text.contains("Input/output error");
    leaves || text.contains("in use by the system") || text.contains("resource busy")
}

pub(crate) fn class(status: &Status) -> Answer {
    match status.code() {
        Code::AlreadyExists => Answer::Otherwise,
        Code::FailedPrecondition => Answer::Refused,
        Code::NotFound => Answer::NotHere,
        Code::DeadlineExceeded => Answer::Late,
        Code::Internal => Answer::Failed,
        code => panic!("{code:?} is no answer: {status}"),
    }
}
