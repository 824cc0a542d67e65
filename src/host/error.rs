//! Errors of host operations.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

use super::exec::ExecError;

/// The result of a host operation.
pub type Result<T> = std::result::Result<T, HostError>;

#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The system call failed.
    #[error("cannot {step} {}", path.display())]
    Io {
        /// The operation, as a verb phrase.
        step: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A component of the path is a symlink.
    #[error("cannot {step} {}: {} is a symlink, and symlinks are not followed", path.display(), link.display())]
    Symlink {
        /// The operation, as a verb phrase.
        step: &'static str,
        path: PathBuf,
        link: PathBuf,
    },
    /// The call did not return by the deadline. It can still take effect.
    #[error("cannot {step} {}: the call timed out", path.display())]
    TimedOut {
        /// The operation, as a verb phrase.
        step: &'static str,
        path: PathBuf,
    },
    /// An earlier call timed out and has not returned, so this one was not started.
    #[error(
        "cannot {step} {}: an earlier call has been blocked in the kernel for {} s", path.display(), since.as_secs()
    )]
    StillRunning {
        /// The operation, as a verb phrase.
        step: &'static str,
        path: PathBuf,
        since: std::time::Duration,
    },
    /// The probe of a device could not be run.
    #[error("cannot probe {}", device.display())]
    Probe {
        device: PathBuf,
        #[source]
        source: Box<ExecError>,
    },
    /// The content of a device cannot be determined reliably.
    #[error("the content of {} is ambiguous: {reason}", device.display())]
    AmbiguousContent { device: PathBuf, reason: String },
    /// The device is no longer the selected one, or its content has changed.
    #[error("{} has changed during the call: {reason}", device.display())]
    DeviceChanged { device: PathBuf, reason: String },
    /// Another process holds the lock of the device.
    #[error(
        "{} is still being formatted, or is locked by another process", device.display()
    )]
    DeviceLocked { device: PathBuf },
    /// A file of the kernel does not have the documented format.
    #[error("cannot parse {}: {reason}", path.display())]
    UnexpectedFormat { path: PathBuf, reason: String },
}

impl HostError {
    /// A system call that failed.
    pub fn io(step: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            step,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    /// Whether the error shows that a filesystem has shut down, or that its device fails.
    #[must_use]
    pub fn is_io_failure(&self) -> bool {
        matches!(self, Self::Io { source, .. }
            if super::vitals::is_dead(source.kind(), source.raw_os_error()))
    }

    /// Whether the kernel reports corrupted data on a disk (`EUCLEAN`, or `EBADMSG` for a wrong checksum).
    #[must_use]
    pub fn is_corruption(&self) -> bool {
        use nix::errno::Errno::{EBADMSG, EUCLEAN};
        let codes = [EUCLEAN, EBADMSG].map(|errno| errno as i32);
        matches!(self, Self::Io { source, .. }
            if source.raw_os_error().is_some_and(|code| codes.contains(&code)))
    }

    /// The kind of the I/O error, if the error is one.
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Io { source, .. } => Some(source.kind()),
            Self::Symlink { .. }
            | Self::TimedOut { .. }
            | Self::StillRunning { .. }
            | Self::Probe { .. }
            | Self::AmbiguousContent { .. }
            | Self::DeviceChanged { .. }
            | Self::DeviceLocked { .. }
            | Self::UnexpectedFormat { .. } => None,
        }
    }

    /// Whether the error is `EIO`.
    #[must_use]
    pub fn is_eio(&self) -> bool {
        match self {
            Self::Io { source, .. } => {
                source.raw_os_error().map(Errno::from_raw) == Some(Errno::EIO)
            }
            Self::Symlink { .. }
            | Self::TimedOut { .. }
            | Self::StillRunning { .. }
            | Self::DeviceLocked { .. }
            | Self::Probe { .. }
            | Self::AmbiguousContent { .. }
            | Self::DeviceChanged { .. }
            | Self::UnexpectedFormat { .. } => false,
        }
    }
}
