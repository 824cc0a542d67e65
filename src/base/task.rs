//! Work that outlives its caller. tonic drops a handler when the client gives up; between creating
//! a disk and answering, that would leave the disk half-made. So whatever changes something runs on
//! a task of its own, which shutdown waits for.

use std::future::Future;

use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// The tasks that run now. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
}

impl Tasks {
    /// Runs the future to its end in the current span, also when the caller is dropped meanwhile.
    ///
    /// # Panics
    /// When the future panics: its panic goes on in the caller.
    pub async fn run<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match self.tracker.spawn(future.in_current_span()).await {
            Ok(output) => output,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Nobody aborts these tasks; only a runtime that goes down cancels them.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Starts the future in the current span and does not wait for it.
    pub fn start<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tracker.spawn(future.in_current_span());
    }

    /// Starts work that changes nothing, such as a listing: shutdown does not wait for it.
    #[expect(
        clippy::disallowed_methods,
        reason = "it keeps the span, and shutdown must not wait for it"
    )]
    pub fn start_background<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tokio::spawn(future.in_current_span());
    }

    /// Returns when no task is running. Tasks started later are not waited for.
    pub async fn finish(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// How many run now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.tracker.len()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_goes_on_when_the_caller_gives_up() {
        let tasks = Tasks::default();
        let done = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&done);
        let work = tasks.run(async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            flag.store(true, Ordering::SeqCst);
        });
        assert!(
            tokio::time::timeout(Duration::from_secs(1), work)
                .await
                .is_err()
        );
        assert_eq!(tasks.running(), 1);
        tasks.finish().await;
        assert!(done.load(Ordering::SeqCst));
    }
}
