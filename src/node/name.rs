//! The stable name of each failure on the node.

use super::error::Error;
use super::plan::Refusal;
use crate::host::HostError;
use crate::model::Failure;

impl Error {
    /// The name that people know it by, with what it means and what to do.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Busy { .. } => Failure::OperationPending,
            Self::NoDevice { .. } => Failure::DeviceNotFound,
            Self::Ambiguous { .. } => Failure::DeviceAmbiguous,
            Self::Outside { .. } => Failure::PathNotAllowed,
            Self::InUse { .. } => Failure::DeviceInUse,
            Self::Refused { refusal, .. } => of_refusal(refusal),
            Self::NotHere { .. } => Failure::NoSuchResource,
            Self::NotGrown { .. } => Failure::DeviceNotResized,
            Self::TooLarge { .. } => Failure::OutOfRange,
            Self::Host { source, .. } => match source {
                HostError::Late { .. } | HostError::Hangs { .. } | HostError::Silent { .. } => {
                    Failure::HostTimeout
                }
                HostError::Claimed { .. } => Failure::FormatRunning,
                HostError::Symlink { .. } => Failure::TargetConflict,
                HostError::Io { .. } if is_not_empty(source) => Failure::TargetConflict,
                HostError::Io { .. }
                | HostError::Probe { .. }
                | HostError::Unclear { .. }
                | HostError::Changed { .. }
                | HostError::Format { .. } => Failure::HostError,
            },
            Self::Setting { .. } => Failure::InvalidSettingsFile,
            Self::Tool { .. } => Failure::ToolFailed,
            Self::Broken { .. } => Failure::FilesystemDamaged,
            Self::NoRoom { .. } => Failure::ToolQueueTimeout,
            Self::Tuning { .. } => Failure::BadRequest,
            Self::Unclean { .. } => Failure::JournalNotReplayed,
            Self::NoCapability { .. } => Failure::CapabilityMissing,
            Self::MountOptions { .. } => Failure::MountOptionsRejected,
        }
    }
}

/// A path that should be removed holds something.
fn is_not_empty(error: &HostError) -> bool {
    error.io_kind() == Some(std::io::ErrorKind::DirectoryNotEmpty)
}

fn of_refusal(refusal: &Refusal) -> Failure {
    match refusal {
        Refusal::Incompatible { .. } => Failure::StagingConflict,
        Refusal::WrongFilesystem { .. } | Refusal::ForeignData { .. } => Failure::ForeignData,
        Refusal::Unfinished { .. } => Failure::FormatInterrupted,
        Refusal::Held { .. } | Refusal::MountedElsewhere { .. } => Failure::DeviceInUse,
        Refusal::BlankReadOnly { .. } | Refusal::GrowReadOnly { .. } => {
            Failure::ReadOnlyUnsupported
        }
        Refusal::Occupied { .. } | Refusal::BadTarget { .. } => Failure::TargetConflict,
        Refusal::NotStaged { .. } => Failure::NotStaged,
        Refusal::StagedReadOnly { .. }
        | Refusal::SingleTarget { .. }
        | Refusal::MixedAccess { .. } => Failure::AccessModeConflict,
    }
}
