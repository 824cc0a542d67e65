//! Runs blocking system calls outside the async runtime.

use std::path::Path;
use std::sync::Arc;

use super::error::{HostError, Result};
use super::hang;
use crate::base::Deadline;

/// Runs a blocking call on a thread and waits for it until the deadline.
///
/// # Errors
/// The error of the call, [`HostError::TimedOut`] at the deadline, or [`HostError::StillRunning`] if the same call timed out
/// earlier and has not returned yet.
pub(super) async fn blocking<T: Send + 'static>(
    deadline: Deadline,
    step: &'static str,
    path: &Path,
    call: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if hang::is_hanging(step, path) {
        return Err(HostError::StillRunning {
            step,
            path: path.to_owned(),
        });
    }
    let watch = Arc::new(hang::Watch::new(step, path));
    let watched = Arc::clone(&watch);
    let watched = tokio::task::spawn_blocking(move || {
        let result = call();
        watched.end();
        result
    });
    match deadline.bound(watched).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only the shutdown of the runtime cancels it.
            Err(_) => std::future::pending().await,
        },
        Err(_) => {
            watch.give_up();
            Err(HostError::TimedOut {
                step,
                path: path.to_owned(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_stuck_call_times_out_and_is_not_repeated_until_it_returns() {
        let (release, hold) = std::sync::mpsc::channel::<()>();
        let deadline = Deadline::after(Duration::from_millis(20));
        let result = blocking(deadline, "stat", Path::new("/x"), move || {
            // Returns when the sender is dropped.
            let _ = hold.recv();
            Ok(())
        })
        .await;
        assert_eq!(
            result.unwrap_err().to_string(),
            "cannot stat /x: the call timed out"
        );
        let again = async || blocking(deadline, "stat", Path::new("/x"), || Ok(())).await;
        assert_eq!(
            again().await.unwrap_err().to_string(),
            "cannot stat /x: an earlier attempt is still blocked in the kernel"
        );
        drop(release);
        let deadline = Deadline::after(Duration::from_secs(60));
        while blocking(deadline, "stat", Path::new("/x"), || Ok(()))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    }
}
