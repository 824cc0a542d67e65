//! Exclusive opens of block devices (`O_EXCL`). A child process has copies of the open files of its parent until it
//! executes its program, so the start of a command could keep a device busy after its file was closed, and mkfs or mount
//! would fail with `EBUSY`. Closing therefore waits for the commands that are being started. An instant remains in which
//! the parent continues already and the kernel has not yet closed the child's copies (fs/exec.c, begin_new_exec).

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use nix::fcntl::OFlag;

/// Read-locked while a command is started. Open files belong to the process, and so does the lock.
static STARTING: RwLock<()> = RwLock::new(());

/// Starts a command. `spawn` returns when the child executes its program, as `std::process::Command::spawn` does.
pub(super) fn start<T>(spawn: impl FnOnce() -> T) -> T {
    let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    spawn()
}

/// A device that no mount and no other exclusive open can use until this is dropped.
#[derive(Debug)]
pub(super) struct ExclusiveFile(Option<File>);

impl ExclusiveFile {
    /// Fails with `EBUSY` while the device is mounted, part of another device or opened exclusively. `flags` are added.
    pub(super) fn open(options: &mut OpenOptions, flags: OFlag, device: &Path) -> io::Result<Self> {
        let flags = flags | OFlag::O_EXCL | OFlag::O_CLOEXEC;
        let file = options.custom_flags(flags.bits()).open(device)?;
        Ok(Self(Some(file)))
    }
}

impl Deref for ExclusiveFile {
    type Target = File;

    fn deref(&self) -> &File {
        self.0.as_ref().expect("the file is closed only on drop")
    }
}

impl DerefMut for ExclusiveFile {
    fn deref_mut(&mut self) -> &mut File {
        self.0.as_mut().expect("the file is closed only on drop")
    }
}

impl Drop for ExclusiveFile {
    fn drop(&mut self) {
        self.0.take();
        drop(STARTING.write());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Longer than a correct drop may take, and waited for only by the check that it has not ended.
    const MOMENT: Duration = Duration::from_millis(50);

    #[test]
    fn closing_waits_for_a_command_that_is_being_started() {
        let (begun, has_begun) = mpsc::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let (closed, is_closed) = mpsc::channel();
        let starter = thread::spawn(move || {
            start(|| {
                begun.send(()).unwrap();
                may_end.recv().unwrap();
            });
        });
        has_begun.recv().unwrap();
        let file = ExclusiveFile(Some(tempfile::tempfile().unwrap()));
        let closer = thread::spawn(move || {
            drop(file);
            closed.send(()).unwrap();
        });
        assert!(is_closed.recv_timeout(MOMENT).is_err());
        end.send(()).unwrap();
        is_closed.recv().unwrap();
        starter.join().unwrap();
        closer.join().unwrap();
    }
}
