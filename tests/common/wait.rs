//! Waiting for a condition with a timeout.

use std::time::Duration;

use tokio::time::{interval, timeout};

const TICK: Duration = Duration::from_millis(10);

/// Polls until a value is available.
///
/// # Panics
/// If that does not happen within the bound.
pub(crate) async fn until<T>(what: &str, bound: Duration, mut poll: impl AsyncFnMut() -> Option<T>) -> T {
    let mut tick = interval(TICK);
    let reached = timeout(bound, async {
        loop {
            tick.tick().await;
            if let Some(value) = poll().await {
                return value;
            }
        }
    });
    match reached.await {
        Ok(value) => value,
        Err(_) => panic!("not within {bound:?}: {what}"),
    }
}
