//! The time of a decision, and the calls of the last minutes.

use std::collections::BTreeMap;
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

    fn second(self) -> i64 {
        self.wall_ms.div_euclid(1000)
    }

    pub(super) fn minute(self) -> i64 {
        self.wall_ms.div_euclid(MINUTE_MS)
    }

    /// Whether a minute begins or ends so close that the cloud's clock may be in another one.
    pub(super) fn is_near_boundary(self) -> bool {
        const NEAR: i64 = 2500;
        (self.wall_ms + NEAR).rem_euclid(MINUTE_MS) < 2 * NEAR
    }

    pub(super) fn since_minute(self) -> Duration {
        let millis = u64::try_from(self.wall_ms.rem_euclid(MINUTE_MS));
        Duration::from_millis(millis.unwrap_or(0))
    }

    pub(super) fn next_minute(self) -> Instant {
        self.at + (Duration::from_mins(1) - self.since_minute())
    }

    /// The last instant of the previous minute.
    pub(super) fn minute_ended(self) -> Self {
        let since = self.since_minute() + Duration::from_millis(1);
        Self {
            at: self.at.checked_sub(since).unwrap_or(self.at),
            wall_ms: self.minute() * MINUTE_MS - 1,
        }
    }
}

/// Calls that were sent and not throttled, by second.
#[derive(Debug, Default)]
pub(super) struct Tally(BTreeMap<i64, u32>);

impl Tally {
    pub(super) fn add(&mut self, sent: Now) {
        *self.0.entry(sent.second()).or_default() += 1;
        if self.0.len() > 120 {
            self.0.pop_first();
        }
    }

    pub(super) fn remove(&mut self, sent: Now) {
        if let Some(second) = self.0.get_mut(&sent.second()) {
            *second = second.saturating_sub(1);
        }
    }

    pub(super) fn in_minute(&self, minute: i64) -> u32 {
        let seconds = self.0.range(minute * 60..(minute + 1) * 60);
        seconds.map(|(_, calls)| calls).sum()
    }

    /// The maximum of calls within a second.
    pub(super) fn peak(&self) -> f64 {
        f64::from(self.0.values().copied().max().unwrap_or(0))
    }

    /// The maximum of calls in the second of this instant and the previous one.
    pub(super) fn rate_at(&self, now: Now) -> f64 {
        let seconds = self.0.range(now.second() - 1..=now.second());
        f64::from(seconds.map(|(_, calls)| *calls).max().unwrap_or(0))
    }
}
