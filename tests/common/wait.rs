//! Waiting for a condition with a timeout.

use std::time::Duration;

use tokio::time::{Instant, interval};

const TICK: Duration = Duration::from_millis(10);

/// Polls until a value is available.
///
/// # Panics
/// If that does not happen within the bound.
pub(crate) async fn until<T>(
    what: &str,
    bound: Duration,
    mut poll: impl AsyncFnMut() -> Option<T>,
) -> T {
    let end = Instant::now() + bound;
    let mut tick = interval(TICK);
    loop {
        tick.tick().await;
        if let Some(value) = poll().await {
            return value;
        }
        assert!(Instant::now() < end, "not within {bound:?}: {what}");
    }
}
