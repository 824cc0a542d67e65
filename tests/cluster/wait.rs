//! Waits for a state of the cluster.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Timeout of any operation on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Polls until the function returns a value; panics after the timeout.
pub(crate) async fn until<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let result = timeout(PATIENCE, async {
        loop {
            if let Some(result) = poll().await {
                return result;
            }
            sleep(POLL_INTERVAL).await;
        }
    });
    match result.await {
        Ok(result) => result,
        Err(_) => panic!("timeout after {PATIENCE:?}: {what}"),
    }
}
