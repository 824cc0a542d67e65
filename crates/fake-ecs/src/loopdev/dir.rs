//! The directory of a fake cloud with devices: claimed at the start, cleaned at the end.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg};

use super::command::CommandError;

/// A failure of devices or their files.
#[derive(Debug, thiserror::Error)]
pub enum LoopError {
    #[error("cannot {step} {path}")]
    Io {
        step: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("a command failed")]
    Command(#[source] CommandError),
    /// The directory contains other files.
    #[error("{0} is not empty and was not created by a fake cloud")]
    Foreign(PathBuf),
    #[error("{0} is used by another fake cloud")]
    InUse(PathBuf),
    #[error("still in use: {0:?}; the kernel frees them on last close")]
    Busy(Vec<PathBuf>),
    /// `losetup` printed a device that is not backed by the file.
    #[error("{device} is not backed by {file}")]
    WrongDevice { device: PathBuf, file: PathBuf },
}

impl LoopError {
    pub(super) fn io(step: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            step,
            path: path.to_owned(),
            source,
        }
    }
}

const MARKER: &str = ".fake-cloud";
const SUBDIRS: [&str; 3] = ["disks", "snapshots", "nodes"];

/// A directory that this fake cloud has locked.
#[derive(Debug)]
pub(super) struct Dir {
    path: PathBuf,
    /// The kernel releases the lock when the process ends.
    _lock: Flock<File>,
}

impl Dir {
    /// Claims the directory: a new one, an empty one, or one with the marker of a fake cloud.
    pub(super) async fn take(path: &Path) -> Result<Self, LoopError> {
        let made = !path.exists();
        let at = |step| move |error| LoopError::io(step, path, error);
        tokio::fs::create_dir_all(path).await.map_err(at("create"))?;
        let path = tokio::fs::canonicalize(path).await.map_err(at("resolve"))?;
        let mark = path.join(MARKER);
        if !mark.exists() {
            let mut entries = tokio::fs::read_dir(&path).await.map_err(at("read"))?;
            if entries.next_entry().await.map_err(at("read"))?.is_some() {
                return Err(LoopError::Foreign(path));
            }
            let word: &[u8] = if made { b"made" } else { b"found" };
            let wrote = tokio::fs::write(&mark, word).await;
            wrote.map_err(|error| LoopError::io("write", &mark, error))?;
        }
        let file = File::open(&mark).map_err(|error| LoopError::io("open", &mark, error))?;
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| LoopError::InUse(path.clone()))?;
        Ok(Self { path, _lock: lock })
    }

    /// Recreates the subdirectories, without the files of a crashed fake cloud.
    pub(super) async fn recreate(&self) -> Result<(), LoopError> {
        self.clear().await?;
        for name in SUBDIRS {
            let path = self.path.join(name);
            let made = tokio::fs::create_dir(&path).await;
            made.map_err(|error| LoopError::io("create", &path, error))?;
        }
        Ok(())
    }

    async fn clear(&self) -> Result<(), LoopError> {
        for name in SUBDIRS {
            let path = self.path.join(name);
            ignore_missing(tokio::fs::remove_dir_all(&path).await)
                .map_err(|error| LoopError::io("remove", &path, error))?;
        }
        Ok(())
    }

    /// Removes the files of this fake cloud, and the directory if it created it.
    pub(super) async fn leave(&self) -> Result<(), LoopError> {
        if !self.path.exists() {
            return Ok(());
        }
        self.clear().await?;
        let mark = self.path.join(MARKER);
        let made = tokio::fs::read(&mark).await.is_ok_and(|word| word == b"made");
        ignore_missing(tokio::fs::remove_file(&mark).await).map_err(|error| LoopError::io("remove", &mark, error))?;
        if made {
            ignore_missing(tokio::fs::remove_dir(&self.path).await)
                .map_err(|error| LoopError::io("remove", &self.path, error))?;
        }
        Ok(())
    }

    pub(super) fn holds(&self, file: &Path) -> bool {
        file.starts_with(&self.path)
    }

    pub(super) fn disk(&self, serial: &str) -> PathBuf {
        self.path.join("disks").join(format!("{serial}.img"))
    }

    pub(super) fn snapshot(&self, id: &str) -> PathBuf {
        self.path.join("snapshots").join(format!("{id}.img"))
    }

    pub(super) fn link(&self, instance: &str, serial: &str) -> PathBuf {
        self.node(instance).join(serial)
    }

    pub(super) fn node(&self, instance: &str) -> PathBuf {
        self.path.join("nodes").join(instance)
    }
}

/// Ignores that a file to remove does not exist.
pub(super) fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_directory_with_other_files_is_rejected() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("precious"), "x").unwrap();
        let rejected = Dir::take(home.path()).await;
        assert!(matches!(rejected, Err(LoopError::Foreign(_))), "{rejected:?}");
        assert!(home.path().join("precious").exists());
    }

    #[tokio::test]
    async fn a_directory_is_locked_exclusively() {
        let home = tempfile::tempdir().unwrap();
        let first = Dir::take(home.path()).await.unwrap();
        let second = Dir::take(home.path()).await;
        assert!(matches!(second, Err(LoopError::InUse(_))), "{second:?}");
        drop(first);
        assert!(Dir::take(home.path()).await.is_ok());
    }

    #[tokio::test]
    async fn only_a_directory_that_was_created_is_removed() {
        let home = tempfile::tempdir().unwrap();
        for (path, there) in [(home.path().join("new"), false), (home.path().to_owned(), true)] {
            let dir = Dir::take(&path).await.unwrap();
            dir.recreate().await.unwrap();
            dir.leave().await.unwrap();
            dir.leave().await.unwrap();
            assert_eq!(path.exists(), there, "{path:?}");
        }
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }
}
