//! Calls counted by second or minute of the clock, and the instant that all decisions are made at.

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

    pub(super) fn minute_began(self) -> Instant {
        self.at.checked_sub(self.since_minute()).unwrap_or(self.at)
    }

    pub(super) fn next_minute(self) -> Instant {
        self.at + (millis(MINUTE_MS) - self.since_minute())
    }

    /// Whether a minute begins or ends so close that the cloud's clock may be in another one.
    pub(super) fn is_near_boundary(self) -> bool {
        const NEAR: Duration = Duration::from_millis(2500);
        self.since_minute() < NEAR || self.since_minute() > millis(MINUTE_MS) - NEAR
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
    peak: u32,
}

impl Tally {
    /// Counts one call of a period. Periods older than the last two are ignored.
    pub(super) fn add(&mut self, period: i64) {
        if period > self.period {
            self.before = self.of(period - 1);
            (self.period, self.count) = (period, 0);
        }
        if period == self.period {
            self.count += 1;
            self.peak = self.peak.max(self.count);
        } else if period == self.period - 1 {
            self.before += 1;
        }
    }

    /// Takes back one call of a period.
    pub(super) fn remove(&mut self, period: i64) {
        if period == self.period {
            self.count = self.count.saturating_sub(1);
        }
    }

    /// The calls of a period.
    pub(super) fn of(&self, period: i64) -> u32 {
        if period == self.period {
            self.count
        } else if period == self.period - 1 {
            self.before
        } else {
            0
        }
    }

    /// The most calls of any period.
    pub(super) fn peak(&self) -> u32 {
        self.peak
    }
}
