//! What can go wrong on the host.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

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
    /// The path leads through a symlink.
    #[error("cannot {step} {}: {} is a symlink, and none is followed", path.display(), link.display())]
    Symlink {
        /// What was tried, as a verb.
        step: &'static str,
        /// On what.
        path: PathBuf,
        /// The symlink.
        link: PathBuf,
    },
    /// The call had not returned at the deadline. It may still have its effect.
    #[error("cannot {step} {}: not done at the deadline", path.display())]
    Late {
        /// What was tried, as a verb.
        step: &'static str,
        /// On what.
        path: PathBuf,
    },
    /// The same call was given up at an earlier deadline, and has not returned: it is not begun again.
    #[error("cannot {step} {}: an earlier attempt hangs in the kernel still", path.display())]
    Hangs {
        /// What was tried, as a verb.
        step: &'static str,
        /// On what.
        path: PathBuf,
    },
    /// A filesystem was asked at an earlier call, and has not answered to this day: it is not asked again.
    #[error("{} has not answered for {} s", path.display(), since.as_secs())]
    Silent {
        /// Where it is mounted.
        path: PathBuf,
        /// For how long.
        since: std::time::Duration,
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
    /// Another process has a device for itself.
    #[error(
        "{} is still being formatted, or is locked by another process", device.display()
    )]
    Claimed {
        /// The device.
        device: PathBuf,
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

    /// Whether it says that a filesystem or its device works no more.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if super::vitals::is_dead(source.kind(), source.raw_os_error()))
    }

    /// Whether the kernel says that what is on a disk contradicts itself (EUCLEAN, or EBADMSG for a wrong
    /// checksum).
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        use nix::errno::Errno::{EBADMSG, EUCLEAN};
        let codes = [EUCLEAN, EBADMSG].map(|errno| errno as i32);
        matches!(self, Self::Io { source, .. }
            if source.raw_os_error().is_some_and(|code| codes.contains(&code)))
    }

    /// The kind of the system's error, where it is one.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::Symlink { .. }
            | Self::Late { .. }
            | Self::Hangs { .. }
            | Self::Silent { .. }
            | Self::Probe { .. }
            | Self::Unclear { .. }
            | Self::Changed { .. }
            | Self::Claimed { .. }
            | Self::Format { .. } => None,
        }
    }

    /// Whether a filesystem answers that it cannot be read at all (`EIO`).
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                source.raw_os_error().map(Errno::from_raw) == Some(Errno::EIO)
            }
            Self::Symlink { .. }
            | Self::Late { .. }
            | Self::Hangs { .. }
            | Self::Silent { .. }
            | Self::Claimed { .. }
            | Self::Probe { .. }
            | Self::Unclear { .. }
            | Self::Changed { .. }
            | Self::Format { .. } => false,
        }
    }
}
