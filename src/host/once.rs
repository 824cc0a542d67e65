//! Calls that may never return: a filesystem on a dead device lets its callers wait for good. Each
//! filesystem has one such call at a time, and one that has been given up is not repeated until it
//! returns, so that a dead device keeps one thread and no more.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio::time::Instant;

use super::blocking::blocking;
use super::device::DeviceNumber;
use super::error::{HostError, Result};
use crate::base::Deadline;

/// The calls that run now, by filesystem. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Once {
    running: Arc<Mutex<HashMap<DeviceNumber, Running>>>,
}

#[derive(Debug)]
struct Running {
    since: Instant,
    /// Whether somebody has waited for it in vain.
    given_up: bool,
    /// Dropped when it returns.
    returns: watch::Sender<()>,
}

/// The place of a running call; it is left when the call returns.
#[derive(Debug)]
struct Slot {
    once: Once,
    filesystem: DeviceNumber,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.once.lock().remove(&self.filesystem);
    }
}

impl Once {
    /// Runs the call, when none for this filesystem is running, and waits for it until the deadline.
    ///
    /// # Errors
    /// [`HostError::TimedOut`] when it has not returned by then, and from then on [`HostError::Unresponsive`], at once.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        filesystem: DeviceNumber,
        deadline: Deadline,
        step: &'static str,
        path: &Path,
        call: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let slot = loop {
            match self.enter(filesystem, path)? {
                Ok(slot) => break slot,
                Err(mut returns) => {
                    if deadline.bound(returns.changed()).await.is_err() {
                        return Err(self.give_up(filesystem, step, path));
                    }
                }
            }
        };
        // The slot travels with the result: it is left only when the call no longer counts as hanging.
        let outcome = blocking(deadline, step, path, move || Ok((call(), slot)));
        match outcome.await {
            Ok((result, _slot)) => result,
            Err(HostError::TimedOut { .. }) => Err(self.give_up(filesystem, step, path)),
            Err(error) => Err(error),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DeviceNumber, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The place for a call, or what tells that it has become free.
    fn enter(
        &self,
        filesystem: DeviceNumber,
        path: &Path,
    ) -> Result<std::result::Result<Slot, watch::Receiver<()>>> {
        let mut running = self.lock();
        match running.get(&filesystem) {
            Some(other) if other.given_up => Err(HostError::Unresponsive {
                path: path.to_owned(),
                since: other.since.elapsed(),
            }),
            Some(other) => Ok(Err(other.returns.subscribe())),
            None => {
                let entry = Running {
                    since: Instant::now(),
                    given_up: false,
                    returns: watch::Sender::new(()),
                };
                running.insert(filesystem, entry);
                Ok(Ok(Slot {
                    once: self.clone(),
                    filesystem,
                }))
            }
        }
    }

    fn give_up(&self, filesystem: DeviceNumber, step: &'static str, path: &Path) -> HostError {
        if let Some(running) = self.lock().get_mut(&filesystem) {
            running.given_up = true;
        }
        HostError::TimedOut {
            step,
            path: path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const ONE: DeviceNumber = DeviceNumber {
        major: 254,
        minor: 16,
    };
    const OTHER: DeviceNumber = DeviceNumber {
        major: 254,
        minor: 32,
    };

    fn brief() -> Deadline {
        Deadline::after(Duration::from_millis(50))
    }

    /// Ample, though nobody waits for it: what it is for returns at once.
    fn ample() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    async fn ask(once: &Once, of: DeviceNumber, path: &str, deadline: Deadline) -> Result<u32> {
        once.run(of, deadline, "ask", Path::new(path), || Ok(7))
            .await
    }

    #[tokio::test]
    async fn a_call_that_hangs_is_not_repeated_and_keeps_nobody_else() {
        const PATH: &str = "/hangs";
        let once = Once::default();
        let (release, hold) = mpsc::channel::<()>();
        let hangs = once.run(ONE, brief(), "ask", Path::new(PATH), move || {
            // Ends when the sender is dropped.
            let _ = hold.recv();
            Ok(0)
        });
        assert!(matches!(hangs.await, Err(HostError::TimedOut { .. })));
        for _ in 0..3 {
            let again = ask(&once, ONE, PATH, ample()).await;
            assert!(
                matches!(again, Err(HostError::Unresponsive { .. })),
                "{again:?}"
            );
        }
        assert_eq!(once.lock().len(), 1);
        assert_eq!(ask(&once, OTHER, "/hangs/not", ample()).await.unwrap(), 7);
        let mut returns = once.lock()[&ONE].returns.subscribe();
        drop(release);
        // The sender is gone when the call has returned.
        assert!(ample().bound(returns.changed()).await.unwrap().is_err());
        assert_eq!(ask(&once, ONE, PATH, ample()).await.unwrap(), 7);
        assert!(once.lock().is_empty());
    }

    #[tokio::test]
    async fn a_second_caller_waits_for_the_first() {
        const PATH: &str = "/waits";
        let once = Once::default();
        let (release, hold) = mpsc::channel::<()>();
        let first = once.run(ONE, ample(), "ask", Path::new(PATH), move || {
            let _ = hold.recv();
            Ok(1)
        });
        let second = async {
            let asked = ask(&once, ONE, PATH, ample());
            tokio::pin!(asked);
            let early = brief().bound(&mut asked).await;
            assert!(early.is_err(), "{early:?}");
            drop(release);
            asked.await
        };
        let (first, second) = tokio::join!(first, second);
        assert_eq!((first.unwrap(), second.unwrap()), (1, 7));
    }
}
