//! Maps node errors to failure names.

use super::error::Error;
use super::plan::PlanError;
use crate::linux::HostError;
use crate::model::Failure;

impl Error {
    /// The stable failure name, with meaning and advice.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::OperationPending { .. } => Failure::OperationPending,
            Self::DiskHung { .. } => Failure::DiskHung,
            Self::DeviceNotFound { .. } => Failure::DeviceNotFound,
            Self::DeviceAmbiguous { .. } => Failure::DeviceAmbiguous,
            Self::DeviceUnidentified { .. } => Failure::DeviceUnidentified,
            Self::PathNotAllowed { .. } => Failure::PathNotAllowed,
            Self::DeviceInUse { .. } => Failure::DeviceInUse,
            Self::Plan { source, .. } => plan_failure(source),
            Self::VolumeNotFound { .. } => Failure::NoSuchResource,
            Self::DeviceNotResized { .. } | Self::PartitionNotGrown { .. } => Failure::DeviceNotResized,
            Self::TooLarge { .. } => Failure::OutOfRange,
            Self::Host { source, .. } => match source {
                HostError::TimedOut { .. } | HostError::StillRunning { .. } => Failure::HostTimeout,
                HostError::DeviceLocked { .. } => Failure::FormatRunning,
                HostError::Symlink { .. } => Failure::TargetConflict,
                HostError::Io { .. } if is_not_empty(source) => Failure::TargetConflict,
                HostError::Io { .. }
                | HostError::Probe { .. }
                | HostError::AmbiguousContent { .. }
                | HostError::DeviceChanged { .. }
                | HostError::UnexpectedFormat { .. } => Failure::HostError,
            },
            Self::InvalidSettingsFile { .. } => Failure::InvalidSettingsFile,
            Self::Tool { .. } => Failure::ToolFailed,
            Self::FilesystemDamaged { .. } => Failure::FilesystemDamaged,
            Self::DuplicateFilesystem { .. } => Failure::DuplicateFilesystem,
            Self::NoToolSlot { .. } => Failure::ToolQueueTimeout,
            Self::Tuning { .. } => Failure::BadRequest,
            Self::JournalNotReplayed { .. } => Failure::JournalNotReplayed,
            Self::CapabilityMissing { .. } => Failure::CapabilityMissing,
            Self::BlockSettingRejected { .. } => Failure::BlockSettingRejected,
            Self::Mount { .. } => Failure::HostError,
            Self::MountOptionsRejected { .. } => Failure::MountOptionsRejected,
        }
    }
}

/// Whether a directory to remove is not empty.
fn is_not_empty(error: &HostError) -> bool {
    error.io_kind() == Some(std::io::ErrorKind::DirectoryNotEmpty)
}

fn plan_failure(error: &PlanError) -> Failure {
    match error {
        PlanError::Incompatible { .. } => Failure::StagingConflict,
        PlanError::FilesystemMismatch { .. }
        | PlanError::ForeignData { .. }
        | PlanError::Partitioned { .. }
        | PlanError::NotSinglePartition { .. } => Failure::ForeignData,
        PlanError::FormatInterrupted { .. } => Failure::FormatInterrupted,
        PlanError::DeviceInUse { .. } | PlanError::MountedElsewhere { .. } => Failure::DeviceInUse,
        PlanError::BlankReadOnly { .. } | PlanError::GrowReadOnly { .. } => Failure::ReadOnlyUnsupported,
        PlanError::PathInUse { .. } | PlanError::WrongPathType { .. } => Failure::TargetConflict,
        PlanError::NotStaged { .. } => Failure::NotStaged,
        PlanError::RemountedReadOnly { .. } => Failure::RemountedReadOnly,
        PlanError::FilesystemShutDown { .. } => Failure::FilesystemShutDown,
        PlanError::StagedReadOnly { .. } | PlanError::AlreadyPublished { .. } | PlanError::MixedAccess { .. } => {
            Failure::AccessModeConflict
        }
    }
}
