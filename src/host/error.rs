//! What can go wrong on the host.

use std::io;
use std::path::{Path, PathBuf};

use super::exec::ExecError;

/// The result of a host call.
pub type Result<T> = std::result::Result<T, HostError>;

/// A host call that failed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The system said no.
    #[error("cannot {step} {}", path.display())]
    Io {
        /// What was tried, as a verb.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// What it said.
        #[source]
        source: io::Error,
    },
    /// The call had not returned at the deadline. It may still have its effect.
    #[error("cannot {step} {}: not done at the deadline", path.display())]
    Late {
        /// What was tried, as a verb.
        step: &'static str,
        /// On what.
        path: PathBuf,
    },
    /// A command could not be run.
    #[error("cannot probe {}", device.display())]
    Probe {
        /// The device.
        device: PathBuf,
        /// What failed.
        #[source]
        source: Box<ExecError>,
    },
    /// What is on a device cannot be told for certain.
    #[error("the content of {} is unclear: {reason}", device.display())]
    Unclear {
        /// The device.
        device: PathBuf,
        /// Why.
        reason: String,
    },
    /// A device is not the one that was chosen any more.
    #[error("{} has changed under the call: {reason}", device.display())]
    Changed {
        /// The device.
        device: PathBuf,
        /// How.
        reason: String,
    },
    /// A file of the kernel does not read as documented.
    #[error("cannot understand {}: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

impl HostError {
    /// An error of the system.
    pub fn io(step: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            step,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    /// The kind of the system's error, where it is one.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::Late { .. }
            | Self::Probe { .. }
            | Self::Unclear { .. }
            | Self::Changed { .. }
            | Self::Format { .. } => None,
        }
    }
}
