//! Errors of the node operations.

use std::io::ErrorKind;

use crate::linux::HostError;
use crate::model::{DiskId, Failure};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("volume {volume}: {operation} failed")]
    Host {
        volume: DiskId,
        operation: &'static str,
        #[source]
        source: HostError,
    },
    #[error("{message}")]
    Named {
        failure: Failure,
        message: String,
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
}

impl Error {
    pub(crate) fn new(failure: Failure, message: String) -> Self {
        Self::Named {
            failure,
            message,
            source: None,
        }
    }

    /// Adds the cause of an error of [`Self::new`].
    pub(crate) fn with_source(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        if let Self::Named { source, .. } = &mut self {
            *source = Some(Box::new(cause));
        }
        self
    }

    /// The stable failure name, with meaning and advice.
    pub fn failure(&self) -> Failure {
        match self {
            Self::Named { failure, .. } => *failure,
            Self::Host { source, .. } => match source {
                HostError::TimedOut { .. } | HostError::StillRunning { .. } => Failure::HostTimeout,
                HostError::DeviceLocked { .. } => Failure::FormatRunning,
                HostError::Symlink { .. } => Failure::TargetConflict,
                // A directory to remove is not empty.
                HostError::Io { source, .. } if source.kind() == ErrorKind::DirectoryNotEmpty => {
                    Failure::TargetConflict
                }
                HostError::Io { .. }
                | HostError::AmbiguousContent { .. }
                | HostError::DeviceChanged { .. }
                | HostError::UnexpectedFormat { .. } => Failure::HostError,
            },
        }
    }
}
