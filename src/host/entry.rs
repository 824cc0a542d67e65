//! Entries of directories: targets of mounts are looked at, made, and removed when empty.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use nix::sys::stat::{major, minor};

use super::device::Number;
use super::error::{HostError, Result};

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
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if is_absent(&error) => return Ok(Entry::Missing),
        Err(error) => return Err(HostError::io("look at", path, error)),
    };
    let kind = metadata.file_type();
    Ok(if kind.is_dir() {
        Entry::Directory
    } else if kind.is_file() {
        Entry::File
    } else if kind.is_symlink() {
        Entry::Symlink
    } else if kind.is_block_device() {
        Entry::Block(Number {
            major: major(metadata.rdev()),
            minor: minor(metadata.rdev()),
        })
    } else {
        Entry::Other
    })
}

/// The path as the mount table spells it: symlinks on the way are resolved, its last part is not
/// touched (that may be a dead mount, or a link that is to be refused).
pub(super) fn canonical(path: &Path) -> Result<PathBuf> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(path.to_owned());
    };
    match fs::canonicalize(parent) {
        Ok(parent) => Ok(parent.join(name)),
        // Nothing is mounted below what is not there.
        Err(error) if is_absent(&error) => Ok(path.to_owned()),
        Err(error) => Err(HostError::io("resolve", parent, error)),
    }
}

/// What a symlink says; none where there is no such link.
pub(super) fn link(path: &Path) -> Result<Option<PathBuf>> {
    match fs::read_link(path) {
        Ok(target) => Ok(Some(target)),
        Err(error) if is_absent(&error) => Ok(None),
        // Not a link.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(None),
        Err(error) => Err(HostError::io("read the link", path, error)),
    }
}

pub(super) fn make_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| HostError::io("make the directory", path, error))
}

pub(super) fn make_file(path: &Path) -> Result<()> {
    if let Some(parent) = path.parent() {
        make_directory(parent)?;
    }
    fs::File::create_new(path)
        .map(drop)
        .map_err(|error| HostError::io("make the file", path, error))
}

/// Removes a directory or file that is empty. What is not there is fine.
pub(super) fn remove_empty(path: &Path) -> Result<()> {
    let removed = match entry(path)? {
        Entry::Missing => Ok(()),
        Entry::Directory => fs::remove_dir(path),
        Entry::File => remove_empty_file(path),
        Entry::Block(_) | Entry::Symlink | Entry::Other => Err(io::Error::other(
            "it is neither a directory nor a plain file",
        )),
    };
    match removed {
        Err(error) if is_absent(&error) => Ok(()),
        other => other.map_err(|error| HostError::io("remove", path, error)),
    }
}

fn remove_empty_file(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.len() > 0 {
        return Err(io::ErrorKind::DirectoryNotEmpty.into());
    }
    fs::remove_file(path)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_empty_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let full = dir.path().join("full");
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
    fn links_on_the_way_are_resolved_and_the_last_part_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap().join("real");
        fs::create_dir(&real).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(canonical(&link.join("x")).unwrap(), real.join("x"));
        assert_eq!(
            canonical(&link).unwrap(),
            dir.path().canonicalize().unwrap().join("link")
        );
        assert_eq!(entry(&link).unwrap(), Entry::Symlink);
        let nowhere = dir.path().join("no/where");
        assert_eq!(canonical(&nowhere).unwrap(), nowhere);
    }
}
