//! Waits for a state of the cluster.

use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Timeout of any operation on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
const TICK: Duration = Duration::from_millis(100);

/// Polls until the function returns a value; panics after the timeout.
pub(crate) async fn until<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let seen = timeout(PATIENCE, async {
        loop {
            if let Some(seen) = poll().await {
                return seen;
            }
            sleep(TICK).await;
        }
    });
    match seen.await {
        Ok(seen) => seen,
        Err(_) => panic!("not within {PATIENCE:?}: {what}"),
    }
}
