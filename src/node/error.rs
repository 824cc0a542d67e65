//! What the node's verbs can fail with.

use std::path::PathBuf;

use super::find::FindError;
use super::plan::Refusal;
use crate::host::{ExecError, HostError};
use crate::model::{Bytes, DiskId, InvalidTuning, MountFlags, Serial};

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
    /// The path is not where volumes go.
    #[error(
        "volume {volume}: {field} {} is not below {}, which --kubelet-dir names",
        path.display(), directory.display()
    )]
    Outside {
        /// The volume.
        volume: DiskId,
        /// The field.
        field: &'static str,
        /// Its value.
        path: PathBuf,
        /// The only directory for volumes.
        directory: PathBuf,
    },
    /// Somebody uses what should come off.
    #[error("volume {volume}: {verb} is refused: {what} is in use by {by}")]
    InUse {
        /// The volume.
        volume: DiskId,
        /// The verb.
        verb: &'static str,
        /// What is in use.
        what: String,
        /// By whom.
        by: String,
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
    /// The device is larger than the caller allows; nothing shrinks.
    #[error(
        "volume {volume}: {device} has {size}, at most {limit} are wanted, and nothing is ever shrunk"
    )]
    TooLarge {
        /// The volume.
        volume: DiskId,
        /// The device.
        device: String,
        /// Its size.
        size: Bytes,
        /// What is allowed.
        limit: Bytes,
    },
    /// A file of settings is not as it must be.
    #[error("{}: {reason}", file.display())]
    Setting {
        /// The file.
        file: PathBuf,
        /// What is wrong, by its field.
        reason: String,
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
        "volume {volume}: the filesystem on {device} is damaged beyond what may be repaired unasked: {why}"
    )]
    Broken {
        /// The volume.
        volume: DiskId,
        /// The device.
        device: String,
        /// How that is known, and what to run.
        why: String,
    },
    /// The filesystem cannot be made as the class wants it.
    #[error("volume {volume}: volume_context")]
    Tuning {
        /// The volume.
        volume: DiskId,
        /// Which parameter.
        #[source]
        source: InvalidTuning,
    },
    /// Other volumes' tools have the memory.
    #[error(
        "volume {volume}: no room for its filesystem tool by the deadline: it needs about {need} MiB of the {all} MiB \
         for such tools (--tool-memory)"
    )]
    NoRoom {
        /// The volume.
        volume: DiskId,
        /// What its tool takes, in MiB.
        need: u32,
        /// What there is for all, in MiB.
        all: u32,
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
