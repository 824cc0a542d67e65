//! What the node's verbs can fail with.

use std::path::PathBuf;

use super::find::FindError;
use super::plan::Refusal;
use crate::host::{ExecError, HostError};
use crate::model::{Bytes, DiskId, MountFlags, Serial};

/// The result of a verb.
pub type Result<T> = std::result::Result<T, Error>;

/// A verb that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another call holds the volume.
    #[error("volume {volume}: another call for it is still running")]
    Busy {
        /// The volume.
        volume: DiskId,
    },
    /// The device did not come.
    #[error("volume {volume}: no device with serial {serial} by the deadline: {seen}")]
    NoDevice {
        /// The volume.
        volume: DiskId,
        /// What was looked for.
        serial: Serial,
        /// What is there instead.
        seen: String,
    },
    /// Devices or links contradict each other.
    #[error("volume {volume}: its device cannot be told for certain")]
    Ambiguous {
        /// The volume.
        volume: DiskId,
        /// How.
        #[source]
        source: FindError,
    },
    /// The state of the node forbids it.
    #[error("volume {volume}: {verb} is refused")]
    Refused {
        /// The volume.
        volume: DiskId,
        /// The verb.
        verb: &'static str,
        /// Why.
        #[source]
        refusal: Refusal,
    },
    /// A disk that must not be written has a filesystem that was not unmounted in order.
    #[error(
        "volume {volume}: its filesystem cannot be mounted, because its journal would have to be replayed \
         and the disk was attached only to be read"
    )]
    Unclean {
        /// The volume.
        volume: DiskId,
        /// The kernel's refusal.
        #[source]
        source: HostError,
    },
    /// The volume is not at this path, or not on this node.
    #[error("volume {volume} is not at {}: {reason}", path.display())]
    NotHere {
        /// The volume.
        volume: DiskId,
        /// The path.
        path: PathBuf,
        /// What is there, or is not.
        reason: String,
    },
    /// The device kept its size.
    #[error("volume {volume}: {device} still has {size} at the deadline, {required} are wanted")]
    NotGrown {
        /// The volume.
        volume: DiskId,
        /// The device.
        device: String,
        /// Its size.
        size: Bytes,
        /// What was asked for.
        required: Bytes,
    },
    /// The host said no.
    #[error("volume {volume}: {verb} failed")]
    Host {
        /// The volume.
        volume: DiskId,
        /// The verb.
        verb: &'static str,
        /// What it said.
        #[source]
        source: HostError,
    },
    /// A tool said no.
    #[error("volume {volume}: cannot {step}")]
    Tool {
        /// The volume.
        volume: DiskId,
        /// What it was to do.
        step: &'static str,
        /// What it said.
        #[source]
        source: ExecError,
    },
    /// A filesystem needs a person.
    #[error(
        "volume {volume}: the filesystem on {device} is damaged beyond what may be repaired unasked \
         (e2fsck -p ended with {code:?}); run e2fsck by hand: {said}"
    )]
    Broken {
        /// The volume.
        volume: DiskId,
        /// The device.
        device: String,
        /// The exit code.
        code: Option<i32>,
        /// What the check said.
        said: String,
    },
    /// The kernel asks for more rights.
    #[error(
        "volume {volume}: the kernel grows a mounted ext filesystem only for CAP_SYS_RESOURCE, which \
         this process lacks; grant it, or stage the volume again to grow it unmounted"
    )]
    NoCapability {
        /// The volume.
        volume: DiskId,
    },
    /// The kernel does not take the options.
    #[error("volume {volume}: the kernel refuses to mount with options \"{flags}\"")]
    MountOptions {
        /// The volume.
        volume: DiskId,
        /// The options.
        flags: MountFlags,
        /// What it said.
        #[source]
        source: HostError,
    },
}
