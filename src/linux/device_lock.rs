//! Locks a block device for mkfs with flock(2) on its device node. mkfs does not open the device exclusively all the
//! time, and continues to run if the driver is killed. It therefore inherits the lock with its standard input: the lock
//! is released when the last holder exits. udev honors the same lock and does not probe a device that is being
//! formatted.

use std::fs::{File, OpenOptions, TryLockError};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use scopeguard::ScopeGuard;
use tokio::runtime::Handle;

use super::blocking::blocking;
use super::device::{Device, check_number};
use super::error::{HostError, IoResult, Result};
use super::samples::has_blank_start;
use crate::base::Deadline;

/// Interval between two attempts to lock a device; flock(2) has no notification.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// An exclusive lock of a device. Clones share the lock.
#[derive(Debug, Clone)]
pub struct DeviceLock(pub(super) Arc<LockedFile>);

pub(super) type LockedFile = ScopeGuard<File, fn(File)>;

impl DeviceLock {
    pub(super) fn new(locked: File) -> Self {
        Self(Arc::new(scopeguard::guard(locked, close)))
    }

    /// The lock as standard input of a command, which must not read from it.
    pub(super) fn to_stdin(&self) -> std::io::Result<Stdio> {
        self.0.try_clone().map(Stdio::from)
    }
}

/// The last close of a device writes its page cache, for example after mkfs was terminated, and waits for that.
fn close(file: File) {
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn_blocking(move || drop(file));
    }
}

pub(super) async fn lock_device(deadline: Deadline, device: &Device) -> Result<DeviceLock> {
    let locked = || HostError::DeviceLocked {
        device: device.path.clone(),
    };
    let mut was_locked = false;
    loop {
        let chosen = device.clone();
        let acquired = blocking(deadline, "lock", &device.path, move |_| try_lock(&chosen)).await;
        match acquired {
            Ok(Some(lock)) => return Ok(lock),
            Ok(None) if deadline.remaining() <= RETRY_INTERVAL => return Err(locked()),
            Ok(None) => was_locked = true,
            // The last attempt was slow, but an earlier one found the device locked.
            Err(HostError::TimedOut { .. }) if was_locked => return Err(locked()),
            Err(error) => return Err(error),
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

pub(super) async fn lock_if_blank(deadline: Deadline, device: &Device) -> Result<Option<DeviceLock>> {
    let chosen = device.clone();
    blocking(deadline, "lock", &device.path, move |path| {
        check_number(&chosen)?;
        // Keep the device open until it is locked: its page cache is dropped when the last opener closes it.
        let opened = File::open(path).io_context("read", path)?;
        if !has_blank_start(&opened, chosen.size).io_context("read", path)? {
            return Ok(None);
        }
        // A failure to lock has the same effect as a device that is locked by another process.
        Ok(try_lock(&chosen).unwrap_or(None))
    })
    .await
}

/// `None` if another process holds the lock.
fn try_lock(device: &Device) -> Result<Option<DeviceLock>> {
    check_number(device)?;
    // udev probes a device that it found locked as soon as a writer closes it.
    let file = OpenOptions::new()
        .read(true)
        .write(!device.read_only)
        .open(&device.path)
        .io_context("lock", &device.path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(DeviceLock::new(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).io_context("lock", &device.path),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn the_last_close_does_not_run_on_the_thread_of_the_runtime() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let is_locked = || File::open(file.path()).unwrap().try_lock().is_err();
        let opened = File::open(file.path()).unwrap();
        opened.try_lock().unwrap();
        let lock = DeviceLock::new(opened);
        let runtime = Builder::new_current_thread().max_blocking_threads(1).build();
        let runtime = runtime.unwrap();
        let (release, hold) = mpsc::channel::<()>();
        let _entered = runtime.enter();
        runtime.spawn_blocking(move || hold.recv());
        drop(lock.clone());
        drop(lock);
        assert!(is_locked(), "the only thread for the close is occupied");
        drop(release);
        runtime
            .block_on(async { tokio::task::spawn_blocking(|| {}).await })
            .unwrap();
        assert!(!is_locked());
    }
}
