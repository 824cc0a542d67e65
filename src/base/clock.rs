//! Wall time, injected: for signatures, and for the fake world. Durations are tokio's business.

use std::fmt::Debug;

use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the wall time.
pub trait Clock: Debug + Send + Sync {
    fn now(&self) -> Timestamp;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where wall time enters"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a given time and then runs with tokio's, paused or not: days pass in
/// seconds when tokio's clock is advanced.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    epoch: Timestamp,
    start: Instant,
}

impl TokioClock {
    /// A clock that shows `epoch` now.
    #[must_use]
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self {
            epoch,
            start: Instant::now(),
        }
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.epoch
            .saturating_add(self.start.elapsed())
            .unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_tokio_clock_runs_with_the_paused_clock() {
        let clock = TokioClock::starting_at(Timestamp::UNIX_EPOCH);
        tokio::time::advance(Duration::from_secs(90_000)).await;
        assert_eq!(clock.now().as_second(), 90_000);
    }
}
