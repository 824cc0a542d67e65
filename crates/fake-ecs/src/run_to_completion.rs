//! Futures that complete even if their caller is dropped, as calls of the real cloud do.

use std::future::Future;

use tokio_util::task::TaskTracker;

/// The output of the future, which is polled to its end also if this one is dropped.
pub(crate) async fn run_to_completion<F>(tasks: &TaskTracker, future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match tasks.spawn(future).await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down.
            Err(_) => std::future::pending().await,
        },
    }
}
