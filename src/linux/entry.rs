//! Inspects mount targets and other paths, and removes empty mount targets.

use std::fs;
use std::io::{
    self,
    ErrorKind::{NotADirectory, NotFound},
};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag};
use nix::sys::stat::{FileStat, SFlag, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};

use super::device::DeviceNumber;
use super::error::{HostError, IoResult, Result};
use super::walk::{self, DirectoryEntry};

/// The type of the file at a path. Symlinks are not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Missing,
    Directory,
    File,
    BlockDevice(DeviceNumber),
    Symlink,
    /// A socket, a pipe, a character device.
    Other,
}

pub(super) fn entry(path: &Path) -> Result<Entry> {
    const STEP: &str = "stat";
    let opened = match walk::open(STEP, path, OFlag::O_NOFOLLOW) {
        Err(error) if is_missing(&error) => return Ok(Entry::Missing),
        opened => opened?,
    };
    let status = fstat(&opened).io_context(STEP, path)?;
    Ok(match file_type(&status) {
        SFlag::S_IFDIR => Entry::Directory,
        SFlag::S_IFREG => Entry::File,
        SFlag::S_IFLNK => Entry::Symlink,
        SFlag::S_IFBLK => Entry::BlockDevice(DeviceNumber::from_raw(status.st_rdev)),
        _ => Entry::Other,
    })
}

/// The age of a device node: devtmpfs creates it with the device, and its modification time does not change.
pub(super) fn age(path: &Path) -> io::Result<Duration> {
    let created = fs::symlink_metadata(path)?.modified()?;
    // If the clock was set back, the node counts as new.
    Ok(created.elapsed().unwrap_or_default())
}

pub(super) fn text(path: &Path) -> io::Result<Option<String>> {
    fs::read_to_string(path).none_if(&[NotFound, NotADirectory])
}

/// Removes an empty directory or file; succeeds if it does not exist. The kernel does not remove mount points.
pub(super) fn remove_empty(path: &Path) -> Result<()> {
    const STEP: &str = "remove";
    let entry = match walk::open_parent(STEP, path) {
        Err(error) if is_missing(&error) => return Ok(()),
        entry => entry?,
    };
    let removed = remove(&entry).none_if(&[NotFound]);
    removed.map(drop).io_context(STEP, path)
}

fn remove(entry: &DirectoryEntry) -> io::Result<()> {
    let (directory, name) = (&entry.directory, entry.name.as_os_str());
    let status = fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    let flag = match file_type(&status) {
        SFlag::S_IFDIR => UnlinkatFlags::RemoveDir,
        SFlag::S_IFREG if status.st_size > 0 => return Err(Errno::ENOTEMPTY.into()),
        SFlag::S_IFREG => UnlinkatFlags::NoRemoveDir,
        _ => {
            let reason = "it is neither a directory nor a regular file";
            return Err(io::Error::other(reason));
        }
    };
    Ok(unlinkat(directory, name, flag)?)
}

fn file_type(status: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(status.st_mode) & SFlag::S_IFMT
}

fn is_missing(error: &HostError) -> bool {
    matches!(error.io_kind(), Some(NotFound | NotADirectory))
}

pub(super) fn filesystem(path: &Path) -> Result<DeviceNumber> {
    let metadata = fs::metadata(path).io_context("stat", path)?;
    Ok(DeviceNumber::from_raw(metadata.dev()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_empty_entries_are_removed() {
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
    fn a_symlink_is_neither_followed_nor_removed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let link = dir.join("link");
        std::os::unix::fs::symlink("/nowhere", &link).unwrap();
        assert_eq!(entry(&link).unwrap(), Entry::Symlink);
        assert!(matches!(entry(&link.join("below")), Err(HostError::Symlink { .. })));
        assert!(remove_empty(&link).is_err());
        assert!(fs::symlink_metadata(&link).is_ok());
        assert_eq!(entry(&dir.join("no/where")).unwrap(), Entry::Missing);
        std::fs::remove_file(link).unwrap();
    }
}
