//! Waits for a state of the cluster.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Timeout of any operation on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
const TICK: Duration = Duration::from_millis(100);

/// Polls until the function returns a value; panics after the timeout.
pub(crate) async fn until<T>(what: &str, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = poll().await {
            return seen;
        }
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        sleep(TICK).await;
    }
}
