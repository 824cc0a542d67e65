//! Errors of the node operations.

use std::path::PathBuf;

use super::plan::PlanError;
use super::resolve_error::ResolveError;
use crate::linux::{ExecError, HostError};
use crate::model::{Bytes, DiskId, Filesystem, InvalidTuning, MountFlags, Serial};

/// The result of a node operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed node operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An operation of the volume is running: of an earlier call, or of this one, which the caller no longer waits for.
    #[error("volume {volume}: an operation is still running: {progress}")]
    OperationPending {
        volume: DiskId,
        /// The operation and its current step, with their durations.
        progress: String,
    },
    /// The device of the volume has completed no I/O although some is in flight.
    #[error("volume {volume}: {device} has completed no I/O for {seconds} s: {progress}")]
    DiskHung {
        volume: DiskId,
        device: String,
        seconds: u64,
        /// What waits for the device.
        progress: String,
    },
    #[error("volume {volume}: no device with serial {serial} appeared by the deadline: {existing}")]
    DeviceNotFound {
        volume: DiskId,
        serial: Serial,
        /// The devices that exist instead.
        existing: String,
    },
    /// Devices or links contradict each other.
    #[error("volume {volume}: its device cannot be determined")]
    DeviceAmbiguous {
        volume: DiskId,
        #[source]
        source: ResolveError,
    },
    #[error(
        "volume {volume}: {operation} is refused: {devices} may be this disk, but cannot be identified: the device has \
         not reported its complete serial"
    )]
    DeviceUnidentified {
        volume: DiskId,
        operation: &'static str,
        devices: String,
    },
    #[error(
        "volume {volume}: {field} {} is not below --kubelet-dir {}",
        path.display(),
        directory.display()
    )]
    PathNotAllowed {
        volume: DiskId,
        field: &'static str,
        path: PathBuf,
        directory: PathBuf,
    },
    #[error("volume {volume}: {operation} is refused: {resource} is in use by {by}")]
    DeviceInUse {
        volume: DiskId,
        operation: &'static str,
        /// The mount or device.
        resource: String,
        by: String,
    },
    /// The state of the node forbids the operation.
    #[error("volume {volume}: {operation} is refused")]
    Plan {
        volume: DiskId,
        operation: &'static str,
        #[source]
        source: PlanError,
    },
    /// A read-only disk has a filesystem that was not unmounted cleanly.
    #[error(
        "volume {volume}: its filesystem cannot be mounted: its journal must be replayed, but the disk is \
         attached read-only; mount it writable once, or set the mount option {option}"
    )]
    JournalNotReplayed {
        volume: DiskId,
        /// The mount option that skips the replay.
        option: &'static str,
        #[source]
        source: HostError,
    },
    #[error("volume {volume} is not at {}: {reason}", path.display())]
    VolumeNotFound {
        volume: DiskId,
        path: PathBuf,
        /// The contradicting state of the node.
        reason: String,
    },
    #[error("volume {volume}: {device} still has {size} at the deadline, {required} are required")]
    DeviceNotResized {
        volume: DiskId,
        device: String,
        size: Bytes,
        required: Bytes,
    },
    #[error(
        "volume {volume}: its partition {partition} still ends more than {tolerance} before the end of the disk; a DOS \
         partition table ends at 2 TiB: convert it to GPT, or copy the data to a new volume"
    )]
    PartitionNotGrown {
        volume: DiskId,
        partition: String,
        tolerance: Bytes,
    },
    #[error("volume {volume}: {device} has {size}, at most {limit} are allowed, and disks are never shrunk")]
    TooLarge {
        volume: DiskId,
        device: String,
        size: Bytes,
        limit: Bytes,
    },
    /// A settings file is invalid.
    #[error("{}: {reason}", file.display())]
    InvalidSettingsFile {
        file: PathBuf,
        /// The invalid field and the reason.
        reason: String,
    },
    #[error("volume {volume}: {operation} failed")]
    Host {
        volume: DiskId,
        operation: &'static str,
        #[source]
        source: HostError,
    },
    #[error("volume {volume}: cannot {step}")]
    Tool {
        volume: DiskId,
        /// The purpose of the tool.
        step: &'static str,
        #[source]
        source: ExecError,
    },
    #[error("volume {volume}: the filesystem on {device} is damaged and is not repaired automatically: {reason}")]
    FilesystemDamaged {
        volume: DiskId,
        device: String,
        /// The evidence, and the command to run.
        reason: String,
    },
    #[error(
        "volume {volume}: its btrfs on {device} has the UUID of the filesystem that is mounted from {others}, as a disk \
         restored from a snapshot has, and this kernel cannot mount both (Linux 6.7 can)"
    )]
    DuplicateFilesystem {
        volume: DiskId,
        device: String,
        /// The names of the devices of the mounted filesystem.
        others: String,
    },
    /// The class's filesystem parameters are invalid.
    #[error("volume {volume}: volume_context")]
    Tuning {
        volume: DiskId,
        #[source]
        source: InvalidTuning,
    },
    /// Tools of other volumes use all slots.
    #[error("volume {volume}: the {tools} of other volumes did not end by the deadline")]
    NoToolSlot {
        volume: DiskId,
        /// The number and the kind of tools that run at once.
        tools: String,
    },
    #[error("volume {volume}: {device}: cannot set {setting} (sysConfig): {reason}")]
    BlockSettingRejected {
        volume: DiskId,
        device: String,
        setting: String,
        reason: String,
    },
    #[error(
        "volume {volume}: growing a mounted ext filesystem requires CAP_SYS_RESOURCE, which this process \
         lacks; grant it, or stage the volume again to grow it unmounted"
    )]
    CapabilityMissing { volume: DiskId },
    #[error(
        "volume {volume}: the kernel of this node cannot mount the {filesystem} on {device}; its log has the reason, \
         such as features that it does not support"
    )]
    Mount {
        volume: DiskId,
        device: String,
        filesystem: Filesystem,
        #[source]
        source: HostError,
    },
    #[error(
        "volume {volume}: the kernel of this node rejects the mount options \"{flags}\", or features of the filesystem; \
         its log has the reason"
    )]
    MountOptionsRejected {
        volume: DiskId,
        flags: MountFlags,
        #[source]
        source: HostError,
    },
}
