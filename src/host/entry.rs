//! Entries of directories: targets of mounts are looked at, made, and removed when empty.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::AtFlags;
use nix::sys::stat::{SFlag, fstat, fstatat, major, minor};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::device::Number;
use super::error::{HostError, Result};
use super::walk::{self, Within};

/// What is at a path; a symlink is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Nothing.
    Missing,
    /// A directory.
    Directory,
    /// A plain file.
    File,
    /// The node of a block device.
    Block(Number),
    /// A symlink.
    Symlink,
    /// A socket, a pipe, a character device.
    Other,
}

pub(super) fn entry(path: &Path) -> Result<Entry> {
    const STEP: &str = "look at";
    let found = match walk::look(STEP, path) {
        Ok(found) => found,
        Err(error) if is_absent(error.io_kind()) => return Ok(Entry::Missing),
        Err(error) => return Err(error),
    };
    let status = fstat(&found).map_err(|errno| HostError::io(STEP, path, errno))?;
    let kind = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
    Ok(match kind {
        SFlag::S_IFDIR => Entry::Directory,
        SFlag::S_IFREG => Entry::File,
        SFlag::S_IFLNK => Entry::Symlink,
        SFlag::S_IFBLK => Entry::Block(Number {
            major: major(status.st_rdev),
            minor: minor(status.st_rdev),
        }),
        _ => Entry::Other,
    })
}

/// What a symlink says; none where there is no such link.
pub(super) fn link(path: &Path) -> Result<Option<PathBuf>> {
    match fs::read_link(path) {
        Ok(target) => Ok(Some(target)),
        Err(error) if is_absent(Some(error.kind())) => Ok(None),
        // Not a link.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
        Err(error) => Err(HostError::io("read the link", path, error)),
    }
}

/// For how long a device node has been there: devtmpfs makes it with the device, and nobody writes to
/// the directory entry itself.
pub(super) fn age(path: &Path) -> Result<Duration> {
    let made = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let made = made.map_err(|error| HostError::io("look at", path, error))?;
    // A clock that was set back makes it young.
    Ok(made.elapsed().unwrap_or_default())
}

/// The text of a file; none where there is no such file.
pub(super) fn text(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if is_absent(Some(error.kind())) => Ok(None),
        Err(error) => Err(HostError::io("read", path, error)),
    }
}

/// Removes a directory or file that is empty. What is not there is fine. The kernel removes nothing
/// that something is mounted on.
pub(super) fn remove_empty(path: &Path) -> Result<()> {
    const STEP: &str = "remove";
    let place = match walk::within(STEP, path) {
        Ok(place) => place,
        Err(error) if is_absent(error.io_kind()) => return Ok(()),
        Err(error) => return Err(error),
    };
    match remove(&place) {
        Ok(()) | Err(Errno::ENOENT) => Ok(()),
        Err(Errno::EINVAL) => {
            let reason = io::Error::other("it is neither a directory nor a plain file");
            Err(HostError::io(STEP, path, reason))
        }
        Err(errno) => Err(HostError::io(STEP, path, errno)),
    }
}

fn remove(place: &Within) -> nix::Result<()> {
    let name = place.name.as_os_str();
    let status = fstatat(&place.directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let kind = SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT;
    let flag = match kind {
        SFlag::S_IFDIR => UnlinkatFlags::RemoveDir,
        SFlag::S_IFREG if status.st_size > 0 => return Err(Errno::ENOTEMPTY),
        SFlag::S_IFREG => UnlinkatFlags::NoRemoveDir,
        _ => return Err(Errno::EINVAL),
    };
    unlinkat(&place.directory, name, flag)
}

fn is_absent(kind: Option<io::ErrorKind>) -> bool {
    matches!(
        kind,
        Some(io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    )
}

/// The device number of the filesystem that a directory is on.
pub(super) fn filesystem(path: &Path) -> Result<Number> {
    let metadata = fs::metadata(path).map_err(|error| HostError::io("look at", path, error))?;
    let device = std::os::unix::fs::MetadataExt::dev(&metadata);
    Ok(Number {
        major: major(device),
        minor: minor(device),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_empty_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let full = dir.path().canonicalize().unwrap().join("full");
        fs::create_dir(&full).unwrap();
        let file = full.join("data");
        fs::write(&file, "x").unwrap();
        for path in [&full, &file] {
            let error = remove_empty(path).unwrap_err();
            assert_eq!(error.io_kind(), Some(io::ErrorKind::DirectoryNotEmpty));
        }
        assert!(file.exists());
        fs::write(&file, "").unwrap();
        remove_empty(&file).unwrap();
        remove_empty(&full).unwrap();
        remove_empty(&full).unwrap();
        assert_eq!(entry(&full).unwrap(), Entry::Missing);
    }

    #[test]
    fn a_symlink_is_seen_as_one_and_neither_followed_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let link = dir.join("link");
        std::os::unix::fs::symlink("/nowhere", &link).unwrap();
        assert_eq!(entry(&link).unwrap(), Entry::Symlink);
        assert!(matches!(
            entry(&link.join("below")),
            Err(HostError::Symlink { .. })
        ));
        assert!(remove_empty(&link).is_err());
        assert!(fs::symlink_metadata(&link).is_ok());
        assert_eq!(entry(&dir.join("no/where")).unwrap(), Entry::Missing);
        std::fs::remove_file(link).unwrap();
    }
}
