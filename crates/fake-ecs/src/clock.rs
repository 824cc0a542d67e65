//! The time of a fake cloud.

use std::fmt::Debug;

use jiff::Timestamp;
use tokio::time::Instant;

/// The time of a fake cloud. Real time, tokio's, or that of a test.
pub trait Clock: Debug + Send + Sync {
    fn now(&self) -> Timestamp;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place of the fake cloud that reads the wall clock"
    )]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Tokio's clock, which can be paused, from this time on.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    epoch: Timestamp,
    start: Instant,
}

impl TokioClock {
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
