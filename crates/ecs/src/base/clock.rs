//! An injectable wall clock, for request signatures and the simulator. Durations are measured with tokio's clock.

use std::fmt::Debug;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

pub trait Clock: Debug + Send + Sync {
    fn now(&self) -> Timestamp;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the wall clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at a given time and advances with tokio's clock, which tests can pause and advance.
#[derive(Debug, Clone, Copy)]
pub struct TokioClock {
    epoch: Timestamp,
    start: Instant,
}

impl TokioClock {
    /// A clock whose current time is `epoch`.
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

/// The difference of the local clock from that of the cloud, for people.
#[must_use]
pub fn describe_difference(local_ahead: SignedDuration) -> String {
    let side = if local_ahead.is_negative() {
        "behind"
    } else {
        "ahead of"
    };
    let seconds = local_ahead.abs().as_secs();
    format!("the clock of this machine is {seconds} s {side} that of the cloud")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_tokio_clock_advances_with_the_paused_clock() {
        let clock = TokioClock::starting_at(Timestamp::UNIX_EPOCH);
        tokio::time::advance(Duration::from_secs(90_000)).await;
        assert_eq!(clock.now().as_second(), 90_000);
    }
}
