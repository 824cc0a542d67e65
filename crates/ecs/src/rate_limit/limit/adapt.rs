//! The rate of a limit that opens again, and its growth.
//!
//! Windows of quotas are not recognized. The rate is the highest one at which the cloud has accepted calls, the time
//! that the limit was closed included: that is the quota's, whatever its window.

use std::collections::VecDeque;

use tokio::time::Instant;

use crate::rate_limit::pace::Pace;

/// After a limit was closed for more seconds, it accepts many calls in one burst.
pub(super) const SHORTLY: f64 = 3.0;

/// Calls are paced at this fraction of a measured rate.
const MARGIN: f64 = 0.99;

/// The share by which a measured rate grows at first, and that of an assumed one.
const GROWTH: f64 = 0.01;
const DOUBLING: f64 = 1.0;

/// The lowest pace, in calls per second. A measurement of a few calls in minutes results in a rate far below the quota,
/// and would delay the next calls for minutes. A quota below this pace throttles calls in each of its windows.
const MIN_RATE: f64 = 1.0;

/// In seconds.
const MAX_PERIOD: f64 = 120.0;

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

impl Learned {
    fn new(rate: f64, growth: f64, now: Instant) -> Self {
        Self {
            pace: Pace::even(rate.max(MIN_RATE)),
            growth,
            period: 0.0,
            proven: 0.0,
            began: now,
            passed: 0,
        }
    }

    /// A rate at which the cloud has accepted calls.
    pub(super) fn measured(rate: f64, now: Instant) -> Self {
        Self::new(MARGIN * rate, GROWTH, now)
    }

    /// A rate that may be far too low.
    pub(super) fn assumed(rate: f64, now: Instant) -> Self {
        Self::new(rate, DOUBLING, now)
    }

    /// The rate after a throttling error, when the limit has opened.
    pub(super) fn throttled(&self, measured: f64, closed_for: f64, now: Instant) -> Self {
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
        let period = (if growth > GROWTH { 2.0 } else { 10.0 } * closed_for).min(MAX_PERIOD);
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
        let earlier = self.calls.partition_point(|sent| seconds(*sent, now) >= 1.0);
        self.peak = self.peak.max(self.calls.len() - earlier);
    }

    pub(super) fn remove(&mut self, sent: Instant) {
        if let Ok(at) = self.calls.binary_search(&sent) {
            self.calls.remove(at);
        }
    }

    pub(super) fn len(&self) -> f64 {
        self.calls.len() as f64
    }

    pub(super) fn since(&self, start: Instant) -> f64 {
        let earlier = self.calls.partition_point(|sent| *sent < start);
        (self.calls.len() - earlier) as f64
    }

    /// Forgets all calls except the probe that has opened the limit.
    pub(super) fn restart(&mut self, probe: Instant) {
        self.calls = [probe].into();
    }

    pub(super) fn peak(&self) -> f64 {
        self.peak as f64
    }

    /// The highest number of calls per second in any period of a second or more that ends then.
    pub(super) fn rate_until(&self, end: Instant) -> Option<f64> {
        (1_u32..)
            .zip(self.calls.iter().rev())
            .map(|(calls, first)| f64::from(calls) / seconds(*first, end).max(1.0))
            .reduce(f64::max)
    }
}

fn seconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64()
}
