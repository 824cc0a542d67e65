//! Blocking system calls, which may never return if a device is dead, and cannot be cancelled. Therefore:
//!
//! * Calls with the same key, which is usually their path, run one after the other.
//! * A call whose caller does not wait any more keeps its thread until it returns. After [`HUNG`], other calls with its
//!   key fail immediately, so that a dead device keeps few threads, and other devices are not affected.
//! * At most [`MAX_CALLS`] calls run concurrently. Up to [`MAX_SLOW_CALLS`] calls that have run for [`SLOW`], or that
//!   their caller has left, are not among these, so that hung devices do not exclude the others.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::error::{HostError, IoResult, Result};
use super::exclusive;
use crate::base::{Deadline, lock};

const MAX_CALLS: usize = 24;
const MAX_SLOW_CALLS: usize = 26;

/// Threads for blocking calls; 2 are for others, such as the resolution of host names.
pub(crate) const MAX_THREADS: usize = MAX_CALLS + MAX_SLOW_CALLS + exclusive::MAX_STARTS + 2;

const SLOW: Duration = Duration::from_secs(5);

/// A call that its caller has left counts as hung only after this time: callers also leave calls that are about to
/// return. Waiting calls check it as often.
const HUNG: Duration = Duration::from_secs(1);

static PERMITS: Semaphore = Semaphore::const_new(MAX_CALLS);
static SLOW_PERMITS: Semaphore = Semaphore::const_new(MAX_SLOW_CALLS);

/// The keys with calls. Threads belong to the process, and so does this.
static KEYS: Mutex<BTreeMap<String, Arc<Calls>>> = Mutex::new(BTreeMap::new());

#[derive(Debug, Default)]
struct Calls {
    /// Held by the running call.
    exclusion: Arc<tokio::sync::Mutex<()>>,
    running: Mutex<Option<Running>>,
}

#[derive(Debug)]
struct Running {
    since: Instant,
    is_given_up: bool,
    permit: SemaphorePermit<'static>,
}

impl Running {
    /// Lets another call start, unless too many calls are slow.
    fn count_as_slow(&mut self) {
        if let Ok(permit) = SLOW_PERMITS.try_acquire() {
            self.permit = permit;
        }
    }
}

impl Calls {
    fn of(key: String) -> Arc<Self> {
        let mut keys = lock(&KEYS);
        keys.retain(|_, calls| Arc::strong_count(calls) > 1);
        Arc::clone(keys.entry(key).or_default())
    }

    /// Changes the state of the call that has been running since then, if it still runs.
    fn update(&self, since: Instant, change: impl FnOnce(&mut Running)) {
        let mut running = lock(&self.running);
        if let Some(running) = running.as_mut().filter(|call| call.since == since) {
            change(running);
        }
    }

    fn hung(&self) -> Option<Duration> {
        let running = lock(&self.running);
        let left = running.as_ref().filter(|running| running.is_given_up)?;
        Some(left.since.elapsed()).filter(|lasts| *lasts >= HUNG)
    }
}

/// Runs a blocking call on a path, which is also its key, and waits for it until the deadline.
///
/// # Errors
/// The error of the call, [`HostError::TimedOut`] at the deadline, or [`HostError::StillRunning`] if an earlier call
/// timed out and has not returned yet.
pub(super) async fn blocking<T: Send + 'static>(
    deadline: Deadline,
    step: &'static str,
    path: &Path,
    call: impl FnOnce(&Path) -> Result<T> + Send + 'static,
) -> Result<T> {
    keyed(path.display().to_string(), deadline, step, path, call).await
}

/// As [`blocking`], for a call whose errors have no context.
pub(super) async fn blocking_io<T: Send + 'static>(
    deadline: Deadline,
    step: &'static str,
    path: &Path,
    call: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
) -> Result<T> {
    blocking(deadline, step, path, move |path| call(path).io_context(step, path)).await
}

/// As [`blocking`], with another key.
pub(super) async fn keyed<T: Send + 'static>(
    key: String,
    deadline: Deadline,
    step: &'static str,
    path: &Path,
    call: impl FnOnce(&Path) -> Result<T> + Send + 'static,
) -> Result<T> {
    let own_path = path.to_owned();
    let timed_out = || HostError::timed_out(step, path);
    let calls = Calls::of(key);
    let exclusive = async {
        loop {
            if let Some(since) = calls.hung() {
                return Err(HostError::StillRunning {
                    step,
                    path: path.to_owned(),
                    since,
                });
            }
            // The caller of the running call may leave it meanwhile.
            let free = Arc::clone(&calls.exclusion).lock_owned();
            if let Ok(exclusive) = timeout(HUNG, free).await {
                return Ok(exclusive);
            }
        }
    };
    let exclusive = deadline.bound(exclusive).await.map_err(|_| timed_out())??;
    let permit = deadline.bound(PERMITS.acquire()).await;
    let permit = permit.map_err(|_| timed_out())?;
    let since = Instant::now();
    *lock(&calls.running) = Some(Running {
        since,
        is_given_up: false,
        permit: permit.expect("the semaphore is never closed"),
    });
    let caller = scopeguard::guard(Arc::clone(&calls), |calls| {
        calls.update(since, |running| {
            running.is_given_up = true;
            running.count_as_slow();
        });
    });
    let mut task = tokio::task::spawn_blocking(move || {
        let result = call(&own_path);
        *lock(&calls.running) = None;
        drop(exclusive);
        result
    });
    let joined = async {
        if let Ok(joined) = timeout(SLOW, &mut task).await {
            return joined;
        }
        caller.update(since, Running::count_as_slow);
        task.await
    };
    match deadline.bound(joined).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only the shutdown of the runtime cancels it.
            Err(_) => std::future::pending().await,
        },
        Err(_) => Err(timed_out()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn brief() -> Deadline {
        Deadline::after(Duration::from_millis(50))
    }

    fn ample() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    /// A call that returns when the sender is dropped.
    fn stuck() -> (mpsc::Sender<()>, impl FnOnce(&Path) -> Result<u32> + Send) {
        let (release, hold) = mpsc::channel::<()>();
        let call = move |_: &Path| {
            let _ = hold.recv();
            Ok(1)
        };
        (release, call)
    }

    async fn stat(path: &str, deadline: Deadline) -> Result<u32> {
        blocking(deadline, "stat", Path::new(path), |_| Ok(7)).await
    }

    #[tokio::test]
    async fn while_a_call_hangs_only_calls_with_its_key_fail() {
        const PATH: &str = "/hangs";
        let (release, call) = stuck();
        let error = blocking(Deadline::after(2 * HUNG), "read", Path::new(PATH), call).await;
        assert_eq!(error.unwrap_err().to_string(), "cannot read /hangs: the call timed out");
        for _ in 0..3 {
            let error = stat(PATH, ample()).await.unwrap_err().to_string();
            assert!(error.starts_with("cannot stat /hangs: an earlier call"), "{error}");
        }
        assert_eq!(stat("/hangs/not", ample()).await.unwrap(), 7);
        drop(release);
        while stat(PATH, ample()).await.is_err() {
            tokio::task::yield_now().await;
        }
        // Until the threads of the calls have ended.
        while lock(&KEYS).contains_key(PATH) {
            tokio::task::yield_now().await;
            let _ = Calls::of("/hangs/other".to_owned());
        }
    }

    #[tokio::test]
    async fn a_call_whose_caller_is_dropped_counts_as_hung() {
        const PATH: &str = "/dropped";
        let (release, call) = stuck();
        let dropped = blocking(ample(), "read", Path::new(PATH), call);
        assert!(Deadline::after(2 * HUNG).bound(dropped).await.is_err());
        assert!(matches!(stat(PATH, ample()).await, Err(HostError::StillRunning { .. })));
        drop(release);
    }

    #[tokio::test]
    async fn a_call_that_was_just_left_delays_others_and_does_not_fail_them() {
        const PATH: &str = "/left";
        let (release, call) = stuck();
        let left = blocking(ample(), "read", Path::new(PATH), call);
        assert!(Deadline::after(HUNG / 10).bound(left).await.is_err());
        let (next, ()) = tokio::join!(stat(PATH, ample()), async { drop(release) });
        assert_eq!(next.unwrap(), 7);
    }

    #[tokio::test]
    async fn the_deadline_includes_the_wait_for_earlier_calls() {
        const PATH: &str = "/limited";
        let (release, call) = stuck();
        let first = blocking(ample(), "read", Path::new(PATH), call);
        let second = async {
            let key = PATH.to_owned();
            let limit = ample().at_most(Duration::from_millis(20));
            let late = keyed(key, limit, "read", Path::new(PATH), |_| Ok(2)).await;
            drop(release);
            late
        };
        let (first, second) = tokio::join!(first, second);
        first.unwrap();
        assert!(matches!(second, Err(HostError::TimedOut { .. })), "{second:?}");
    }

    #[tokio::test]
    async fn a_second_call_waits_for_the_first() {
        const PATH: &str = "/waits";
        let (release, call) = stuck();
        let first = blocking(ample(), "read", Path::new(PATH), call);
        let second = async {
            let early = stat(PATH, brief()).await;
            assert!(matches!(early, Err(HostError::TimedOut { .. })), "{early:?}");
            drop(release);
            stat(PATH, ample()).await
        };
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first.unwrap(), second.unwrap()), (1, 7));
    }
}
