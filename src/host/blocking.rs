//! System calls that may block, off the runtime.

use std::path::Path;
use std::sync::Arc;

use super::error::{HostError, Result};
use super::hang;
use crate::base::Deadline;

/// Runs a blocking call off the runtime and waits for it until the deadline.
pub(super) async fn blocking<T: Send + 'static>(
    deadline: Deadline,
    step: &'static str,
    path: &Path,
    call: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if hang::is_hanging(step, path) {
        return Err(HostError::Hangs {
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
            // Only a runtime that goes down cancels it.
            Err(_) => std::future::pending().await,
        },
        Err(_) => {
            watch.give_up();
            Err(HostError::Late {
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
    async fn a_call_that_hangs_is_given_up_at_the_deadline() {
        let (release, hold) = std::sync::mpsc::channel::<()>();
        let deadline = Deadline::after(Duration::from_millis(20));
        let result = blocking(deadline, "look at", Path::new("/x"), move || {
            // Ends when the sender is dropped.
            let _ = hold.recv();
            Ok(())
        })
        .await;
        assert_eq!(
            result.unwrap_err().to_string(),
            "cannot look at /x: not done at the deadline"
        );
        let again = async || blocking(deadline, "look at", Path::new("/x"), || Ok(())).await;
        assert_eq!(
            again().await.unwrap_err().to_string(),
            "cannot look at /x: an earlier attempt hangs in the kernel still"
        );
        drop(release);
        let deadline = Deadline::after(Duration::from_secs(60));
        while blocking(deadline, "look at", Path::new("/x"), || Ok(()))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    }
}
