//! Watches a directory for new entries with inotify: the fake cloud's links to devices cause no uevents. The directory
//! can be created after the watch, and can be removed and created again.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use tokio::io::unix::AsyncFd;

use super::uevent::watched;

/// The events for a new entry, and for the removal of the directory itself.
const EVENTS: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_ONLYDIR);

#[derive(Debug)]
pub(super) struct DirectoryWatch {
    path: PathBuf,
    inotify: AsyncFd<Fd>,
    watched: Watched,
}

#[derive(Debug)]
struct Fd(Inotify);

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// The watched directory: the requested one, or its nearest existing ancestor.
#[derive(Debug)]
struct Watched {
    descriptor: WatchDescriptor,
    /// The next component of the path, which does not exist yet.
    missing: Option<OsString>,
}

impl DirectoryWatch {
    /// Watches a directory. Later events are not missed. Must be called in a runtime.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        Ok(Self {
            path: path.to_owned(),
            watched: watch_nearest(&inotify, path)?,
            inotify: watched(Fd(inotify))?,
        })
    }

    /// Returns when an entry was created, or may have been.
    pub(super) async fn next(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.inotify.readable().await?;
            let is_relevant = drain(&ready.get_inner().0, &self.watched)?;
            ready.clear_ready();
            if is_relevant {
                let inotify = &self.inotify.get_ref().0;
                let now = watch_nearest(inotify, &self.path)?;
                if now.descriptor != self.watched.descriptor {
                    // The watch of a removed directory no longer exists.
                    let _ = inotify.rm_watch(self.watched.descriptor);
                }
                self.watched = now;
                return Ok(());
            }
        }
    }
}

fn drain(inotify: &Inotify, watched: &Watched) -> io::Result<bool> {
    let mut is_relevant = false;
    loop {
        match inotify.read_events() {
            Ok(events) => {
                is_relevant |= events.iter().any(|event| match &watched.missing {
                    // The event has no name if the directory itself was removed, or events were lost.
                    Some(missing) => event.name.as_ref().is_none_or(|name| name == missing),
                    None => true,
                });
            }
            Err(Errno::EAGAIN) => return Ok(is_relevant),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Watches the directory, or its nearest existing ancestor.
fn watch_nearest(inotify: &Inotify, path: &Path) -> io::Result<Watched> {
    loop {
        let (descriptor, at) = watch_ancestor(inotify, path)?;
        let rest = path.strip_prefix(&at).ok();
        let missing = rest.and_then(|rest| rest.iter().next());
        // The directory may have been created before its ancestor was watched.
        match missing {
            Some(name) if at.join(name).is_dir() => {}
            missing => {
                return Ok(Watched {
                    descriptor,
                    missing: missing.map(OsString::from),
                });
            }
        }
    }
}

fn watch_ancestor(inotify: &Inotify, path: &Path) -> io::Result<(WatchDescriptor, PathBuf)> {
    for at in path.ancestors() {
        match inotify.add_watch(at, EVENTS) {
            Ok(descriptor) => return Ok((descriptor, at.to_owned())),
            Err(Errno::ENOENT | Errno::ENOTDIR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const AMPLE: Duration = Duration::from_secs(30);
    /// Timeout of waits that must not succeed.
    const BRIEF: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn new_entries_are_reported_in_a_directory_created_later() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("nodes/i-1");
        let mut directory = DirectoryWatch::open(&path).unwrap();
        for _ in 0..2 {
            fs::create_dir_all(&path).unwrap();
            timeout(AMPLE, directory.next()).await.unwrap().unwrap();
            // The creation of two directories causes one or two events.
            while timeout(BRIEF, directory.next()).await.is_ok() {}
            std::os::unix::fs::symlink("/dev/loop0", path.join("bp1")).unwrap();
            timeout(AMPLE, directory.next()).await.unwrap().unwrap();
            fs::remove_dir_all(home.path().join("nodes")).unwrap();
            timeout(AMPLE, directory.next()).await.unwrap().unwrap();
            while timeout(BRIEF, directory.next()).await.is_ok() {}
        }
    }

    #[tokio::test]
    async fn events_outside_the_path_are_not_reported() {
        let home = tempfile::tempdir().unwrap();
        let mut directory = DirectoryWatch::open(&home.path().join("nodes/i-1")).unwrap();
        fs::write(home.path().join("other"), "x").unwrap();
        assert!(timeout(BRIEF, directory.next()).await.is_err());
    }
}
