//! Paths that pods can reach into are walked from the root, a component at a time, each through the
//! descriptor of the one before; no symlink is followed. What a path led to when it was walked is what is
//! mounted on, made or removed: exchanging a directory for a symlink meanwhile changes nothing.
//!
//! openat2(2) with `RESOLVE_NO_SYMLINKS` would do the same in one call, but not before Linux 5.6, and
//! makes no directories on the way.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat};
use nix::sys::stat::{Mode, SFlag, fstat, fstatat, mkdirat};

use super::error::{HostError, Result};

/// What directories are made with; it is what kubelet gives its own.
const DIRECTORY_MODE: Mode = Mode::from_bits_truncate(0o750);

/// The directory that a path is in, and the path's last part.
#[derive(Debug)]
pub(super) struct Within {
    pub(super) directory: OwnedFd,
    pub(super) name: OsString,
}

impl Within {
    /// A path that leads to the entry through the descriptor: its last part is looked up anew.
    pub(super) fn path(&self) -> PathBuf {
        through(&self.directory).join(&self.name)
    }
}

/// A path that leads to what the descriptor is of, whatever its name is now.
pub(super) fn through(descriptor: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()))
}

/// The directory that the path is in.
pub(super) fn within(step: &'static str, path: &Path) -> Result<Within> {
    let (parent, name) = split(step, path)?;
    Ok(Within {
        directory: descend(step, parent, false)?,
        name: name.to_owned(),
    })
}

/// What is at the path, but for a symlink; the topmost mount there.
pub(super) fn reach(step: &'static str, path: &Path) -> Result<OwnedFd> {
    let found = look(step, path)?;
    let kind = kind_of(&found).map_err(|errno| HostError::io(step, path, errno))?;
    if kind == SFlag::S_IFLNK {
        return Err(HostError::Symlink {
            step,
            path: path.to_owned(),
            link: path.to_owned(),
        });
    }
    Ok(found)
}

/// What is at the path, also if that is a symlink.
pub(super) fn look(step: &'static str, path: &Path) -> Result<OwnedFd> {
    let Within { directory, name } = within(step, path)?;
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(&directory, name.as_os_str(), flags, Mode::empty())
        .map_err(|errno| HostError::io(step, path, errno))
}

/// Makes the directory, and those above it.
pub(super) fn make_directory(path: &Path) -> Result<()> {
    descend("make the directory", path, true).map(drop)
}

/// Makes an empty file, and the directories above it.
pub(super) fn make_file(path: &Path) -> Result<()> {
    const STEP: &str = "make the file";
    let (parent, name) = split(STEP, path)?;
    let directory = descend(STEP, parent, true)?;
    let flags = OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_WRONLY | OFlag::O_NOFOLLOW;
    let mode = Mode::from_bits_truncate(0o640);
    openat(&directory, name, flags | OFlag::O_CLOEXEC, mode)
        .map(drop)
        .map_err(|errno| HostError::io(STEP, path, errno))
}

/// The directory with every symlink resolved; as it is given where it is not there.
pub(super) fn real(path: &Path) -> Result<PathBuf> {
    match fs::canonicalize(path) {
        Ok(path) => Ok(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(path.to_owned()),
        Err(error) => Err(HostError::io("resolve", path, error)),
    }
}

/// The kind of file that a descriptor is of.
pub(super) fn kind_of(descriptor: &OwnedFd) -> nix::Result<SFlag> {
    Ok(SFlag::from_bits_truncate(fstat(descriptor)?.st_mode) & SFlag::S_IFMT)
}

fn split<'a>(step: &'static str, path: &'a Path) -> Result<(&'a Path, &'a OsStr)> {
    path.parent()
        .zip(path.file_name())
        .ok_or_else(|| HostError::io(step, path, Errno::EINVAL))
}

fn descend(step: &'static str, path: &Path, make: bool) -> Result<OwnedFd> {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let failed = |errno| HostError::io(step, path, errno);
    let mut walked = PathBuf::from("/");
    let mut at = open(&walked, flags, Mode::empty()).map_err(failed)?;
    for part in path.components() {
        let name = match part {
            Component::RootDir | Component::CurDir => continue,
            Component::Normal(name) => name,
            Component::ParentDir | Component::Prefix(_) => return Err(failed(Errno::EINVAL)),
        };
        walked.push(name);
        let mut next = openat(&at, name, flags, Mode::empty());
        if make && matches!(next, Err(Errno::ENOENT)) {
            match mkdirat(&at, name, DIRECTORY_MODE) {
                Ok(()) | Err(Errno::EEXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
            next = openat(&at, name, flags, Mode::empty());
        }
        at = match next {
            Ok(next) => next,
            Err(Errno::ENOTDIR | Errno::ELOOP) if is_symlink(&at, name) => {
                return Err(HostError::Symlink {
                    step,
                    path: path.to_owned(),
                    link: walked,
                });
            }
            Err(errno) => return Err(failed(errno)),
        };
    }
    Ok(at)
}

fn is_symlink(directory: &OwnedFd, name: &OsStr) -> bool {
    fstatat(directory, name, AtFlags::AT_SYMLINK_NOFOLLOW).is_ok_and(|found| {
        SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT == SFlag::S_IFLNK
    })
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
    fn no_symlink_on_the_way_or_at_the_end_is_followed() {
        let (_dir, dir) = place();
        fs::create_dir_all(dir.join("outside/below")).unwrap();
        symlink(dir.join("outside"), dir.join("link")).unwrap();
        for path in [dir.join("link/below"), dir.join("link")] {
            let error = reach("stat", &path).unwrap_err();
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
    fn a_directory_that_is_exchanged_for_a_symlink_after_the_walk_changes_nothing() {
        let (_dir, dir) = place();
        fs::create_dir_all(dir.join("pod")).unwrap();
        fs::create_dir_all(dir.join("elsewhere")).unwrap();
        let walked = within("make", &dir.join("pod/target")).unwrap();
        fs::rename(dir.join("pod"), dir.join("moved")).unwrap();
        symlink(dir.join("elsewhere"), dir.join("pod")).unwrap();
        fs::create_dir(walked.path()).unwrap();
        assert!(dir.join("moved/target").is_dir());
        assert!(!dir.join("elsewhere/target").exists());
    }

    #[test]
    fn directories_on_the_way_are_made_and_found_again() {
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
