//! A directory whose entries come and go, over inotify: the fake cloud's links to devices are no
//! devices of the kernel. It may come later than the watch, and go and come again.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, WatchDescriptor};
use tokio::io::unix::AsyncFd;

use super::uevent::watched;

/// What tells that an entry came, or that the directory itself went.
const KINDS: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_ONLYDIR);

/// A watched directory.
#[derive(Debug)]
pub(super) struct Directory {
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

/// What is watched: the directory, or the nearest one above it that is there.
#[derive(Debug)]
struct Watched {
    descriptor: WatchDescriptor,
    /// The entry on the way to the directory that is not there yet.
    awaited: Option<OsString>,
}

impl Directory {
    /// Watches a directory; from now on it misses nothing. To be called in a runtime.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
        Ok(Self {
            path: path.to_owned(),
            watched: settle(&inotify, path)?,
            inotify: watched(Fd(inotify))?,
        })
    }

    /// Returns when an entry has come, or may have.
    pub(super) async fn next(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.inotify.readable().await?;
            let of_interest = drain(&ready.get_inner().0, &self.watched)?;
            ready.clear_ready();
            if of_interest {
                let inotify = &self.inotify.get_ref().0;
                let now = settle(inotify, &self.path)?;
                if now.descriptor != self.watched.descriptor {
                    // One that is gone has no watch any more.
                    let _ = inotify.rm_watch(self.watched.descriptor);
                }
                self.watched = now;
                return Ok(());
            }
        }
    }
}

fn drain(inotify: &Inotify, watched: &Watched) -> io::Result<bool> {
    let mut of_interest = false;
    loop {
        match inotify.read_events() {
            Ok(events) => {
                of_interest |= events.iter().any(|event| match &watched.awaited {
                    // The name is missing where the directory itself went, or events were lost.
                    Some(awaited) => event.name.as_ref().is_none_or(|name| name == awaited),
                    None => true,
                });
            }
            Err(Errno::EAGAIN) => return Ok(of_interest),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Watches the directory, or the nearest one above it.
fn settle(inotify: &Inotify, path: &Path) -> io::Result<Watched> {
    loop {
        let (descriptor, at) = nearest(inotify, path)?;
        let beyond = path.strip_prefix(&at).ok();
        let awaited = beyond.and_then(|rest| rest.iter().next());
        // It may have come before the one above it was watched.
        match awaited {
            Some(name) if at.join(name).is_dir() => {}
            awaited => {
                return Ok(Watched {
                    descriptor,
                    awaited: awaited.map(OsString::from),
                });
            }
        }
    }
}

fn nearest(inotify: &Inotify, path: &Path) -> io::Result<(WatchDescriptor, PathBuf)> {
    for at in path.ancestors() {
        match inotify.add_watch(at, KINDS) {
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
    /// What is waited for in vain.
    const BRIEF: Duration = Duration::from_millis(50);

    #[tokio::test]
    async fn an_entry_is_told_also_in_a_directory_that_comes_later() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("nodes/i-1");
        let mut directory = Directory::open(&path).unwrap();
        for _ in 0..2 {
            fs::create_dir_all(&path).unwrap();
            timeout(AMPLE, directory.next()).await.unwrap().unwrap();
            // Of the two directories' coming one or two are told.
            while timeout(BRIEF, directory.next()).await.is_ok() {}
            std::os::unix::fs::symlink("/dev/loop0", path.join("bp1")).unwrap();
            timeout(AMPLE, directory.next()).await.unwrap().unwrap();
            fs::remove_dir_all(home.path().join("nodes")).unwrap();
            timeout(AMPLE, directory.next()).await.unwrap().unwrap();
            while timeout(BRIEF, directory.next()).await.is_ok() {}
        }
    }

    #[tokio::test]
    async fn what_happens_beside_the_way_to_the_directory_is_not_told() {
        let home = tempfile::tempdir().unwrap();
        let mut directory = Directory::open(&home.path().join("nodes/i-1")).unwrap();
        fs::write(home.path().join("other"), "x").unwrap();
        assert!(timeout(BRIEF, directory.next()).await.is_err());
    }
}
