//! The version of the running kernel.

use std::fmt;
use std::fs;
use std::path::Path;

use super::error::{HostError, Result};

/// A version of Linux: major and minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion {
    pub major: u32,
    pub minor: u32,
}

impl From<(u32, u32)> for KernelVersion {
    fn from((major, minor): (u32, u32)) -> Self {
        Self { major, minor }
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl KernelVersion {
    /// Parses a release such as `5.10.0-36-cloud-amd64`.
    #[must_use]
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.split(|c: char| !c.is_ascii_digit());
        Some(Self {
            major: numbers.next()?.parse().ok()?,
            minor: numbers.next()?.parse().ok()?,
        })
    }
}

/// The running kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Such as `5.10.0-36-cloud-amd64`.
    pub release: String,
    pub version: KernelVersion,
}

/// Reads `sys/kernel/osrelease` of the procfs mounted at `proc`.
pub(super) fn read(proc: &Path) -> Result<Kernel> {
    let path = proc.join("sys/kernel/osrelease");
    let text = fs::read_to_string(&path).map_err(|error| HostError::io("read", &path, error))?;
    let release = text.trim().to_owned();
    let version = KernelVersion::parse(&release).ok_or_else(|| HostError::UnexpectedFormat {
        path,
        reason: format!("{release:?} is not a kernel release"),
    })?;
    Ok(Kernel { release, version })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_parsed() {
        for (release, expected) in [
            ("5.10.0-36-cloud-amd64", (5, 10)),
            ("6.1.192", (6, 1)),
            ("6.12-rc3", (6, 12)),
            ("5.10.134-18.al8.x86_64", (5, 10)),
        ] {
            assert_eq!(KernelVersion::parse(release), Some(expected.into()));
        }
        assert_eq!(KernelVersion::parse("linux"), None);
        assert!(KernelVersion::from((5, 4)) < KernelVersion::from((5, 10)));
    }
}
