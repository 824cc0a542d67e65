//! Errors of host operations.

use std::io;
use std::path::{Path, PathBuf};

use nix::errno::Errno;

pub type Result<T> = std::result::Result<T, HostError>;

/// The error of a host operation. A `step` is the operation, as a verb phrase.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    #[error("cannot {step} {}", path.display())]
    Io {
        step: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A component of the path is a symlink.
    #[error("cannot {step} {}: {} is a symlink, and symlinks are not followed", path.display(), link.display())]
    Symlink {
        step: &'static str,
        path: PathBuf,
        link: PathBuf,
    },
    /// The call did not return by the deadline. It can still take effect.
    #[error("cannot {step} {}: the call timed out", path.display())]
    TimedOut { step: &'static str, path: PathBuf },
    /// An earlier call timed out and has not returned, so this one was not started.
    #[error(
        "cannot {step} {}: an earlier call has been blocked in the kernel for {} s", path.display(), since.as_secs()
    )]
    StillRunning {
        step: &'static str,
        path: PathBuf,
        since: std::time::Duration,
    },
    #[error("the content of {} is ambiguous: {reason}", device.display())]
    AmbiguousContent { device: PathBuf, reason: String },
    /// The device is no longer the selected one, or its content has changed.
    #[error("{} has changed during the call: {reason}", device.display())]
    DeviceChanged { device: PathBuf, reason: String },
    #[error(
        "{} is still being formatted, or is locked by another process", device.display()
    )]
    DeviceLocked { device: PathBuf },
    /// A file of the kernel does not have the documented format.
    #[error("cannot parse {}: {reason}", path.display())]
    UnexpectedFormat { path: PathBuf, reason: String },
}

pub(super) trait IoResult<T> {
    /// Adds the operation, as a verb phrase, and its path.
    fn io_context(self, step: &'static str, path: &Path) -> Result<T>;

    /// `None` if the error is of one of these kinds.
    fn none_if(self, kinds: &[io::ErrorKind]) -> io::Result<Option<T>>;
}

impl<T, E: Into<io::Error>> IoResult<T> for std::result::Result<T, E> {
    fn io_context(self, step: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| HostError::io(step, path, source))
    }

    fn none_if(self, kinds: &[io::ErrorKind]) -> io::Result<Option<T>> {
        match self.map_err(Into::into) {
            Err(error) if kinds.contains(&error.kind()) => Ok(None),
            result => result.map(Some),
        }
    }
}

pub(super) fn errno(error: &io::Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw)
}

impl HostError {
    pub fn io(step: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io {
            step,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    pub(super) fn timed_out(step: &'static str, path: &Path) -> Self {
        let path = path.to_owned();
        Self::TimedOut { step, path }
    }

    pub(super) fn unexpected_format(path: &Path, reason: impl std::fmt::Display) -> Self {
        Self::UnexpectedFormat {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// Whether the error shows that a filesystem has shut down, or that its device fails.
    pub fn is_io_failure(&self) -> bool {
        use Errno::{EIO, ENODEV, ENXIO, ESHUTDOWN};
        self.io_kind() == Some(io::ErrorKind::NotConnected) || self.has_errno(&[EIO, ENXIO, ENODEV, ESHUTDOWN])
    }

    /// Whether the kernel reports corrupted data on a disk (`EUCLEAN`, or `EBADMSG` for a wrong checksum).
    pub fn is_corruption(&self) -> bool {
        self.has_errno(&[Errno::EUCLEAN, Errno::EBADMSG])
    }

    pub fn is_eio(&self) -> bool {
        self.has_errno(&[Errno::EIO])
    }

    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        self.io_source().map(io::Error::kind)
    }

    fn has_errno(&self, any_of: &[Errno]) -> bool {
        let errno = self.io_source().and_then(errno);
        errno.is_some_and(|errno| any_of.contains(&errno))
    }

    fn io_source(&self) -> Option<&io::Error> {
        let Self::Io { source, .. } = self else {
            return None;
        };
        Some(source)
    }
}
