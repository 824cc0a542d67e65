//! Whether the error of a creation is final, and pauses between retries.

use std::time::Duration;

use tokio::time::Instant;

use diskplugin::disk::{Error, FailureKind};

pub(crate) fn is_final(error: &Error) -> bool {
    !matches!(
        error.failure_kind(),
        FailureKind::Unavailable | FailureKind::Aborted | FailureKind::DeadlineExceeded
    )
}

pub(crate) async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// Repeats a call as a sidecar does, for at most this time: what is not proven is `UNAVAILABLE` for a while.
pub(crate) async fn retry<T>(seconds: u64, mut call: impl AsyncFnMut() -> Result<T, Error>) -> Result<T, Error> {
    let end = Instant::now() + Duration::from_secs(seconds);
    loop {
        match call().await {
            Err(error) if !is_final(&error) && Instant::now() < end => sleep(5).await,
            outcome => return outcome,
        }
    }
}
