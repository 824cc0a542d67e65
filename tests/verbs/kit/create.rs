//! Whether the error of a creation is final, and pauses between retries.

use std::time::Duration;

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
