//! A token bucket that spaces calls evenly.

use std::time::Duration;

use tokio::time::Instant;

/// The longest time between two attempts of a waiting call to get a token.
const MAX_WAIT: f64 = 3600.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// Calls per second.
    pub(super) rate: f64,
    burst: f64,
    /// Tokens that the bucket lacked after the last call. Negative: so many further calls may be sent without spacing.
    debt: f64,
    last: Option<Instant>,
}

impl Pace {
    /// A bucket for even calls. Its capacity compensates for timers that fire late.
    pub(super) fn even(rate: f64) -> Self {
        Self::bursts(rate, 1.0 + 0.004 * rate)
    }

    pub(super) fn bursts(rate: f64, burst: f64) -> Self {
        Self {
            rate,
            burst,
            debt: 0.0,
            last: None,
        }
    }

    /// The same calls at another pace.
    pub(super) fn continued_at(self, pace: Self) -> Self {
        Self {
            debt: self.debt,
            last: self.last,
            ..pace
        }
    }

    /// Permits so many additional calls without spacing.
    pub(super) fn add(&mut self, calls: f64) {
        self.debt -= calls;
    }

    /// When the next call may be sent. One that is not urgent is spaced even if others need no spacing.
    pub(super) fn next(&self, now: Instant, is_urgent: bool) -> Instant {
        let debt = self.debt_at(now);
        let missing = debt + 1.0 - self.burst;
        let wait = |calls: f64| Duration::from_secs_f64((calls / self.rate).clamp(0.001, MAX_WAIT));
        if missing > 1e-6 {
            now + wait(missing)
        } else if debt < 0.0 && !is_urgent {
            self.last.map_or(now, |last| last + wait(1.0))
        } else {
            now
        }
    }

    pub(super) fn send(&mut self, now: Instant) {
        self.debt = self.debt_at(now) + 1.0;
        self.last = Some(now);
    }

    /// Returns the token of a call that did not reach the cloud.
    pub(super) fn give_back(&mut self) {
        // A call that was sent without spacing, because of a negative debt, has reduced that.
        self.debt = match self.debt {
            ..0.0 => self.debt - 1.0,
            debt => (debt - 1.0).max(0.0),
        };
    }

    fn debt_at(&self, now: Instant) -> f64 {
        let last = self.last.unwrap_or(now);
        let paid = now.duration_since(last).as_secs_f64() * self.rate;
        (self.debt - paid).max(self.debt.min(0.0))
    }
}
