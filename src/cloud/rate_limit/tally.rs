//! The instant of a decision, and calls counted by second or minute of the clock.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

const MINUTE_MS: i64 = 60_000;

/// An instant, by the monotonic clock for pauses and by the wall clock for the cloud's windows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub(super) at: Instant,
    wall_ms: i64,
}

impl Now {
    pub(super) fn new(at: Instant, wall: Timestamp) -> Self {
        let wall_ms = wall.as_millisecond();
        Self { at, wall_ms }
    }

    pub(super) fn second(self) -> i64 {
        self.wall_ms.div_euclid(1000)
    }

    pub(super) fn minute(self) -> i64 {
        self.wall_ms.div_euclid(MINUTE_MS)
    }

    pub(super) fn since_second(self) -> Duration {
        millis(self.wall_ms.rem_euclid(1000))
    }

    pub(super) fn since_minute(self) -> Duration {
        millis(self.wall_ms.rem_euclid(MINUTE_MS))
    }

    pub(super) fn next_minute(self) -> Instant {
        self.at + (millis(MINUTE_MS) - self.since_minute())
    }

    /// Whether a minute begins or ends so close that the cloud's clock may be in another one.
    pub(super) fn is_near_boundary(self) -> bool {
        const NEAR: i64 = 2500;
        (self.wall_ms + NEAR).rem_euclid(MINUTE_MS) < 2 * NEAR
    }
}

fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

/// Calls of the latest period and of the one before it.
#[derive(Debug, Default)]
pub(super) struct Tally {
    period: i64,
    count: u32,
    before: u32,
    pub(super) peak: u32,
}

impl Tally {
    pub(super) fn add(&mut self, period: i64) {
        if period != self.period {
            (self.before, self.count) = (self.of(period - 1), 0);
            self.period = period;
        }
        self.count += 1;
        self.peak = self.peak.max(self.count);
    }

    /// Takes back one call, unless its period is long over.
    pub(super) fn remove(&mut self, period: i64) {
        if period == self.period {
            self.count = self.count.saturating_sub(1);
        } else if period == self.period - 1 {
            self.before = self.before.saturating_sub(1);
        }
    }

    pub(super) fn of(&self, period: i64) -> u32 {
        if period == self.period {
            self.count
        } else if period == self.period - 1 {
            self.before
        } else {
            0
        }
    }

    /// Calls per period at this instant, if the tally is by second.
    pub(super) fn rate_at(&self, now: Now) -> f64 {
        let second = now.second();
        let part = 1.0 - now.since_second().as_secs_f64();
        f64::from(self.of(second)) + part * f64::from(self.of(second - 1))
    }
}
