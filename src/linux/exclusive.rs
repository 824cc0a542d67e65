//! Exclusive opens of block devices (`O_EXCL`), beside commands that are being started. A child process has copies of
//! the open files of its parent until it executes its program. A copy that is closed last keeps the device busy, and
//! mkfs, e2fsck or mount fail with `EBUSY`. An exclusive file is therefore closed while no command is being started.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use nix::fcntl::OFlag;
use scopeguard::ScopeGuard;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// Read-locked while a command is started. Open files belong to the process, and so does the lock.
static STARTING: RwLock<()> = RwLock::new(());

/// Timeout for a started child to close its copies, which takes microseconds unless the machine is overloaded.
const CHILD_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of commands that are started concurrently.
pub(super) const MAX_STARTS: usize = 8;

static STARTS: Semaphore = Semaphore::const_new(MAX_STARTS);

/// Starts a command on a blocking thread, which waits until no exclusive file is being closed, and until the child
/// executes its program. `started` is called before that.
pub(super) async fn start(mut command: Command, started: impl FnOnce(&Child) + Send + 'static) -> io::Result<Child> {
    let permit = STARTS.acquire().await.map_err(io::Error::other)?;
    let start = spawn_blocking(move || {
        // Also if the caller does not wait any more.
        let _permit = permit;
        let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
        let child = command.spawn()?;
        started(&child);
        wait_for_exec(&child);
        Ok(child)
    });
    start.await.map_err(io::Error::other)?
}

/// `spawn` returns as soon as the child no longer uses the memory of this process, slightly before the kernel closes
/// the child's copies of open files and then sets its new name (fs/exec.c, begin_new_exec).
fn wait_for_exec(child: &Child) {
    let name = |process: &str| fs::read(format!("/proc/{process}/comm")).ok();
    let own_name = name("thread-self");
    if let Some(id) = child.id() {
        let id = id.to_string();
        let start = Instant::now();
        while name(&id).is_some_and(|name| Some(name) == own_name) && start.elapsed() < CHILD_TIMEOUT {
            thread::yield_now();
        }
    }
}

/// A device that no mount and no other exclusive open can use until this is dropped.
pub(super) type ExclusiveFile = ScopeGuard<File, fn(File)>;

/// Fails with `EBUSY` while the device is mounted, part of another device or opened exclusively. `flags` are added.
pub(super) fn open(options: &mut OpenOptions, flags: OFlag, device: &Path) -> io::Result<ExclusiveFile> {
    let flags = flags | OFlag::O_EXCL | OFlag::O_CLOEXEC;
    let file = options.custom_flags(flags.bits()).open(device)?;
    Ok(scopeguard::guard(file, close))
}

fn close(file: File) {
    // The last close of a block device waits for its I/O, which must not delay the start of other commands.
    let _last = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let _none_is_started = STARTING.write();
    drop(file);
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    /// A lock of an open file description lasts, like an exclusive open, until the last copy is closed.
    #[tokio::test(flavor = "multi_thread", worker_threads = 3)]
    async fn a_closed_file_has_no_copy_in_a_command_that_is_being_started() {
        const STARTS: usize = 1000;
        const TIMEOUT: Duration = Duration::from_secs(120);
        let (is_done, started) = (AtomicBool::new(false), AtomicUsize::new(0));
        let handle = tokio::runtime::Handle::current();
        let path = tempfile::NamedTempFile::new().unwrap();
        let mut busy = 0;
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let _runtime = handle.enter();
                    while !is_done.load(Ordering::Relaxed) {
                        #[expect(clippy::disallowed_methods, reason = "the subject of the test")]
                        let mut command = Command::new("true");
                        command.stdin(Stdio::null());
                        let run = async { start(command, |_| {}).await?.wait().await };
                        handle.block_on(run).unwrap();
                        started.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let begun = Instant::now();
            // A panic here would wait for the threads for ever.
            while started.load(Ordering::Relaxed) < STARTS && begun.elapsed() < TIMEOUT {
                let file = File::open(path.path()).unwrap();
                match file.try_lock() {
                    Ok(()) => {}
                    Err(fs::TryLockError::WouldBlock) => busy += 1,
                    Err(fs::TryLockError::Error(error)) => panic!("{error}"),
                }
                close(file);
            }
            is_done.store(true, Ordering::Relaxed);
        });
        assert!(started.into_inner() >= STARTS);
        assert_eq!(busy, 0);
    }
}
