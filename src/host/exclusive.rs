//! Exclusive opens of block devices (`O_EXCL`). A child process has copies of the open files of its parent until it
//! executes its program, so the start of a command could keep a device busy after its file was closed, and mkfs or mount
//! would fail with `EBUSY`. Closing therefore waits for the commands that are being started.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use nix::fcntl::OFlag;

/// Read-locked while a command is started. Open files belong to the process, and so does the lock.
static STARTING: RwLock<()> = RwLock::new(());

/// Starts a command. `spawn` returns after the child has executed its program, as `std::process::Command::spawn` does.
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
    use std::fs::TryLockError;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio::task::JoinSet;

    use super::*;
    use crate::base::Deadline;
    use crate::host::{Command, Exec, ProcessExec};

    /// A lock of flock(2) is inherited like an exclusive open, and needs no device.
    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_command_that_is_started_does_not_keep_a_closed_file_open() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let done = Arc::new(AtomicBool::new(false));
        let mut starters = JoinSet::new();
        for _ in 0..3 {
            let done = Arc::clone(&done);
            starters.spawn(async move {
                while !done.load(Ordering::Relaxed) {
                    let deadline = Deadline::after(Duration::from_secs(60));
                    let outcome = ProcessExec.run(&Command::new("true"), deadline).await;
                    outcome.unwrap();
                }
            });
        }
        for _ in 0..2_000 {
            let file = OpenOptions::new().read(true).open(&path).unwrap();
            let locked = file.try_lock();
            assert!(!matches!(locked, Err(TryLockError::WouldBlock)));
            locked.unwrap();
            drop(ExclusiveFile(Some(file)));
            tokio::task::yield_now().await;
        }
        done.store(true, Ordering::Relaxed);
        starters.join_all().await;
    }
}
