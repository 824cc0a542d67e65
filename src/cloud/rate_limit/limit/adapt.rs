//! The rate of a limit that opens again, and its growth.
//!
//! Windows of quotas are not recognized. The rate is the highest one at which the cloud has accepted calls, the time that
//! the limit was closed included: that is the quota's, whatever its window.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::super::pace::Pace;
use super::{Closed, Limit, Shared};

/// After a limit was closed for more seconds, it accepts many calls at once.
const SHORTLY: f64 = 3.0;

/// Calls are paced at this fraction of a measured rate.
const MARGIN: f64 = 0.99;

/// The share by which a measured rate grows at first, and that of an assumed one.
const GROWTH: f64 = 0.01;
const DOUBLING: f64 = 1.0;

/// Calls that are remembered.
const MAX_SENT: usize = 1000;

/// When the calls were sent that were not throttled, since the limit opened.
#[derive(Debug, Default)]
pub(super) struct Sent {
    calls: VecDeque<Instant>,
    /// The most calls within a second.
    peak: usize,
}

/// A pace that follows the quota.
#[derive(Debug)]
pub(super) struct Learned {
    pub(super) pace: Pace,
    /// By which share the rate grows after the next period that uses it up.
    growth: f64,
    /// The least duration of a period in seconds.
    period: f64,
    /// The rate that the last such period used up, less with each throttling error.
    proven: f64,
    /// When the current period began, and the calls that passed in it.
    began: Instant,
    passed: u32,
}

impl Limit {
    /// Opens after the probe sent at that time has passed.
    pub(super) fn open(
        &mut self,
        closed: &Closed,
        probe: Instant,
        now: Instant,
        shared: &mut Shared,
    ) {
        self.sent.remove(probe);
        // Without waiting calls, the probe is sent late.
        let latest = probe.min(closed.until);
        // Unless the cloud has stated when, it has opened at an unknown time after the newest throttled call.
        let opened = match closed.is_stated {
            true => latest,
            false => closed.failed + latest.saturating_duration_since(closed.failed) / 2,
        };
        let measured = self.sent.rate_until(opened);
        let closed_for = seconds(closed.since, latest);
        let mut learned = match (&self.learned, measured) {
            (Some(learned), _) => learned.throttled(measured.unwrap_or_default(), closed_for, now),
            (None, Some(rate)) => Learned::new(MARGIN * rate, GROWTH, now),
            (None, None) => Learned::assumed(1.0 / closed_for.max(1.0), now),
        };
        learned.pace.send(probe);
        // As many calls as before are accepted at once, fewer if they can be spaced without losing much time.
        let burst = self.sent.calls.len() as f64 * (1.0 - SHORTLY / closed_for.max(SHORTLY));
        learned.pace.add(burst);
        if burst <= 0.0 {
            shared.rate = Some(learned.pace.rate);
        }
        (shared.throttled, shared.opened) = (false, Some(now));
        tracing::info!(
            cloud.action = self.name,
            calls_per_second = learned.pace.rate,
            "adapted to a quota"
        );
        self.learned = Some(learned);
        self.sent.calls = [probe].into();
    }
}

impl Learned {
    fn new(rate: f64, growth: f64, now: Instant) -> Self {
        Self {
            pace: Pace::even(rate.max(0.01)),
            growth,
            period: 0.0,
            proven: 0.0,
            began: now,
            passed: 0,
        }
    }

    /// A rate that may be far too low.
    pub(super) fn assumed(rate: f64, now: Instant) -> Self {
        Self::new(rate, DOUBLING, now)
    }

    /// The rate after a throttling error, when the limit has opened.
    fn throttled(&self, measured: f64, closed_for: f64, now: Instant) -> Self {
        let current = self.pace.rate;
        let (rate, growth) = if self.growth >= DOUBLING && self.proven > 0.0 {
            // The rate before it was doubled was not throttled.
            (self.proven, GROWTH)
        } else {
            // A measurement of few calls may be far too low.
            let least = self.proven.max(current / 2.0).min(current);
            let rate = measured.clamp(least, current);
            let lost = 1.0 - rate / current;
            (rate, if lost > 0.1 { lost / 2.0 } else { GROWTH })
        };
        // A limit that grows is closed again: for a small share of the time.
        let period = if growth > GROWTH { 2.0 } else { 10.0 } * closed_for;
        Self {
            proven: 0.9 * self.proven,
            period,
            ..Self::new(MARGIN * rate, growth, now)
        }
    }

    /// Records a call that passed, and raises the rate after a period that used it up.
    pub(super) fn passed(&mut self, now: Instant) {
        self.passed += 1;
        let elapsed = seconds(self.began, now);
        let period: f64 = match self.growth {
            DOUBLING.. => 1.0,
            0.05.. => 8.0,
            _ => 15.0,
        };
        let rate = self.pace.rate;
        if elapsed < period.max(self.period).max(2.0 / rate) {
            return;
        }
        if f64::from(self.passed) >= 0.9 * rate * elapsed {
            self.proven = rate;
            let raised = Pace::even(rate * (1.0 + self.growth));
            self.pace = self.pace.continued_at(raised);
            self.growth = (2.0 * self.growth).min(DOUBLING);
        }
        (self.began, self.passed) = (now, 0);
    }
}

impl Sent {
    pub(super) fn add(&mut self, now: Instant) {
        if self.calls.len() == MAX_SENT {
            self.calls.pop_front();
        }
        self.calls.push_back(now);
        let earlier = self
            .calls
            .partition_point(|sent| seconds(*sent, now) >= 1.0);
        self.peak = self.peak.max(self.calls.len() - earlier);
    }

    pub(super) fn remove(&mut self, sent: Instant) {
        if let Ok(at) = self.calls.binary_search(&sent) {
            self.calls.remove(at);
        }
    }

    pub(super) fn peak(&self) -> f64 {
        self.peak as f64
    }

    /// The highest number of calls per second in any period of a second or more that ends then.
    fn rate_until(&self, end: Instant) -> Option<f64> {
        (1_u32..)
            .zip(self.calls.iter().rev())
            .map(|(calls, first)| f64::from(calls) / seconds(*first, end).max(1.0))
            .reduce(f64::max)
    }
}

fn seconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64()
}
