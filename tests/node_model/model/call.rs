//! CSI calls, as kubelet makes them, and their outcome.

use diskplugin::csi::proto::VolumeCapability;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use tonic::{Code, Status};

use crate::common::csi::{filesystem, read_only, with_mode};
use crate::common::request::block;
use crate::common::volume::{LONG_TIMEOUT, NodePort, NodeVolume};
use crate::model::machine::{Machine, SHORT_TIMEOUT};
use crate::model::world::{Access, Call, FsType, Outcome, Stage, World};

impl Machine {
    /// Each attempt has four times as much time as the one before.
    pub(crate) fn call(&mut self, call: Call, after: &World, attempt: u32) -> Result<(), Status> {
        self.restart_if_configured();
        let timeout = match after.outcome {
            Some(Outcome::DeadlineExceeded) => SHORT_TIMEOUT * 4_u32.pow(attempt),
            _ => LONG_TIMEOUT,
        };
        let path = |mount_point| self.mount_point(mount_point).to_str().unwrap().to_owned();
        // A call ignores the paths that it does not have.
        let at = |volume, staging, target| {
            let port = NodePort::InProcess(self.service.clone());
            let id = format!("d-{}", self.serial(volume));
            NodeVolume {
                timeout,
                staging: path(staging),
                target: path(target),
                ..NodeVolume::new(port, id, self.dir.path(), None)
            }
        };
        let requested = |volume: usize, access, single| capability(after.volumes[volume].fs, access, single);
        self.runtime.block_on(async {
            match call {
                Call::Stage(Stage {
                    volume,
                    staging,
                    access,
                    read_only: is_reader,
                }) => {
                    let writer = requested(volume, access, false);
                    let capability = if is_reader { read_only(writer) } else { writer };
                    at(volume, staging, 0).with(Some(capability)).stage().await
                }
                Call::Publish(call) => {
                    let capability = requested(call.volume, call.access, call.single);
                    let volume = NodeVolume {
                        readonly: call.read_only,
                        ..at(call.volume, call.staging, call.target)
                    };
                    volume.with(Some(capability)).publish().await
                }
                Call::Unpublish { volume, target } => at(volume, 0, target).unpublish().await,
                Call::Unstage { volume, staging } => at(volume, staging, 0).unstage().await,
                Call::Expand { volume, mount_point } => at(volume, 0, mount_point).expand(0).await.map(drop),
                Call::Stats { volume, mount_point } => at(volume, 0, mount_point).stats().await.map(drop),
            }
        })
    }
}

fn capability(fs: FsType, access: Access, single: bool) -> VolumeCapability {
    let mode = match single {
        true => Mode::SingleNodeSingleWriter,
        false => Mode::SingleNodeMultiWriter,
    };
    let capability = match access {
        Access::Mount => filesystem(fs.name()),
        Access::MountOtherType => filesystem(fs.other()),
        Access::Block => block(),
    };
    with_mode(capability.access_type, mode)
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
