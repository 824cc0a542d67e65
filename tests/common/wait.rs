//! Waiting for a state, with a bound.

use std::time::Duration;

use tokio::time::{Instant, interval};

const TICK: Duration = Duration::from_millis(10);

/// Looks until there is something to see. Fails when there is nothing within the bound.
pub(crate) async fn until<T>(
    what: &str,
    bound: Duration,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let end = Instant::now() + bound;
    let mut tick = interval(TICK);
    loop {
        tick.tick().await;
        if let Some(seen) = look().await {
            return seen;
        }
        assert!(Instant::now() < end, "not within {bound:?}: {what}");
    }
}
