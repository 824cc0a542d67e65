//! Opens paths that pods can modify with `openat2` and `RESOLVE_NO_SYMLINKS`. They are used through the descriptor: if
//! a pod replaces a directory by a symlink meanwhile, nothing is mounted, created or removed elsewhere.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{Mode, mkdirat};

use super::error::{HostError, IoResult, Result};

/// The mode of created directories; kubelet creates its own with it.
const DIRECTORY_MODE: Mode = Mode::from_bits_truncate(0o750);

#[derive(Debug)]
pub(super) struct DirectoryEntry {
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
}

impl DirectoryEntry {
    /// The path of the entry below the descriptor of its directory. The kernel looks up the name again.
    pub(super) fn path(&self) -> PathBuf {
        path_of(&self.directory).join(&self.name)
    }
}

/// A path that leads to the open file, even if it was renamed.
pub(super) fn path_of(descriptor: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

pub(super) fn open_parent(step: &'static str, path: &Path) -> Result<DirectoryEntry> {
    let (parent, name) = split(step, path)?;
    Ok(DirectoryEntry {
        directory: open(step, parent, OFlag::O_DIRECTORY)?,
        name: name.to_owned(),
    })
}

pub(super) fn make_directory(path: &Path) -> Result<()> {
    make("make the directory", path).map(drop)
}

pub(super) fn make_file(path: &Path) -> Result<()> {
    const STEP: &str = "make the file";
    let (parent, name) = split(STEP, path)?;
    let directory = make(STEP, parent)?;
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let mode = Mode::from_bits_truncate(0o640);
    openat(&directory, name, flags, mode).map(drop).io_context(STEP, path)
}

pub(super) fn real(path: &Path) -> io::Result<PathBuf> {
    let resolved = fs::canonicalize(path).none_if(&[io::ErrorKind::NotFound])?;
    Ok(resolved.unwrap_or_else(|| path.to_owned()))
}

fn split<'a>(step: &'static str, path: &'a Path) -> Result<(&'a Path, &'a OsStr)> {
    let parts = path.parent().zip(path.file_name());
    parts.ok_or(Errno::EINVAL).io_context(step, path)
}

/// Opens a path for its descriptor only (`O_PATH`); of a mount point, the topmost mount. With `O_NOFOLLOW`, the path
/// itself may be a symlink.
pub(super) fn open(step: &'static str, path: &Path, flags: OFlag) -> Result<OwnedFd> {
    let is_parent = |part| part == Component::ParentDir;
    if !path.is_absolute() || path.components().any(is_parent) {
        return Err(HostError::io(step, path, Errno::EINVAL));
    }
    let how = OpenHow::new()
        .flags(flags | OFlag::O_PATH | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    openat2(AT_FDCWD, path, how).map_err(|errno| {
        let mut links = path.ancestors().filter(|part| part.is_symlink());
        match links.next().filter(|_| errno == Errno::ELOOP) {
            Some(link) => HostError::Symlink {
                step,
                path: path.to_owned(),
                link: links.last().unwrap_or(link).to_owned(),
            },
            None => HostError::io(step, path, errno),
        }
    })
}

/// Opens a directory. Creates it and its parents if they do not exist.
fn make(step: &'static str, path: &Path) -> Result<OwnedFd> {
    let opened = open(step, path, OFlag::O_DIRECTORY);
    let is_missing = |error: &HostError| error.io_kind() == Some(io::ErrorKind::NotFound);
    if !opened.as_ref().is_err_and(is_missing) {
        return opened;
    }
    let (parent, name) = split(step, path)?;
    let parent = make(step, parent)?;
    match mkdirat(&parent, name, DIRECTORY_MODE) {
        Ok(()) | Err(Errno::EEXIST) => open(step, path, OFlag::O_DIRECTORY),
        Err(errno) => Err(HostError::io(step, path, errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A directory without symlinks on the way.
    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        (dir, real)
    }

    #[test]
    fn symlinks_are_followed_nowhere_in_a_path() {
        let (_dir, dir) = place();
        fs::create_dir_all(dir.join("outside/below")).unwrap();
        symlink(dir.join("outside"), dir.join("link")).unwrap();
        for path in [dir.join("link/below"), dir.join("link")] {
            let error = open("stat", &path, OFlag::empty()).unwrap_err();
            let HostError::Symlink { link, .. } = &error else {
                panic!("{error:?}");
            };
            assert_eq!(*link, dir.join("link"));
        }
        for made in [
            make_directory(&dir.join("link/new")),
            make_file(&dir.join("link/new")),
            make_directory(&dir.join("link")),
        ] {
            assert!(matches!(made, Err(HostError::Symlink { .. })), "{made:?}");
        }
        assert!(!dir.join("outside/new").exists());
    }

    #[test]
    fn a_directory_that_is_replaced_by_a_symlink_after_it_was_opened_has_no_effect() {
        let (_dir, dir) = place();
        fs::create_dir_all(dir.join("pod")).unwrap();
        fs::create_dir_all(dir.join("elsewhere")).unwrap();
        let walked = open_parent("make", &dir.join("pod/target")).unwrap();
        fs::rename(dir.join("pod"), dir.join("moved")).unwrap();
        symlink(dir.join("elsewhere"), dir.join("pod")).unwrap();
        fs::create_dir(walked.path()).unwrap();
        assert!(dir.join("moved/target").is_dir());
        assert!(!dir.join("elsewhere/target").exists());
    }

    #[test]
    fn missing_parents_are_created_once() {
        let (_dir, dir) = place();
        for _ in 0..2 {
            make_directory(&dir.join("a/b/c")).unwrap();
        }
        make_file(&dir.join("a/d/file")).unwrap();
        assert!(dir.join("a/b/c").is_dir() && dir.join("a/d/file").is_file());
        assert!(make_directory(&dir.join("a/d/file/x")).is_err());
        assert!(make_directory(Path::new("/a/../b")).is_err());
    }
}
