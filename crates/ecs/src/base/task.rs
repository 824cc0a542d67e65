//! Tasks that outlive their caller. tonic drops a handler when the client cancels the call, which could
//! leave a mutating operation half done. Such operations run on separate tasks, and shutdown waits for them.

use std::future::Future;

use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// The running tasks. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
}

impl Tasks {
    /// Runs the future to completion in the current span, even if the caller is dropped.
    ///
    /// # Panics
    /// If the future panics, the panic is resumed in the caller.
    pub async fn run<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> T {
        match self.tracker.spawn(future.in_current_span()).await {
            Ok(output) => output,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // These tasks are never aborted; only the shutdown of the runtime cancels them.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Starts the future in the current span and returns immediately.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(future.in_current_span());
    }

    /// Starts work that several calls share, outside of the current span.
    pub fn spawn_detached(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(future);
    }

    /// Starts a future without side effects, such as a listing; shutdown does not wait for it.
    #[expect(clippy::disallowed_methods, reason = "the span is kept, and shutdown must not wait")]
    pub fn spawn_background(&self, future: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(future.in_current_span());
    }

    /// Waits until no task is running. Tasks that start later are not awaited.
    pub async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

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
    async fn a_task_continues_after_its_caller_is_dropped() {
        let tasks = Tasks::default();
        let done = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&done);
        let work = tasks.run(async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            flag.store(true, Ordering::SeqCst);
        });
        assert!(tokio::time::timeout(Duration::from_secs(1), work).await.is_err());
        assert_eq!(tasks.running(), 1);
        tasks.wait().await;
        assert!(done.load(Ordering::SeqCst));
    }
}
