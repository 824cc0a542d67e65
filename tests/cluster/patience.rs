//! Waiting for a state of the cluster: often enough to lose no time, seldom enough to cost none.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Longer than anything takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
const TICK: Duration = Duration::from_millis(100);

/// Looks until there is something to see. Fails when there is nothing within the bound.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        sleep(TICK).await;
    }
}
