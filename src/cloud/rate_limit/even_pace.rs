//! A token bucket that spaces calls evenly at a fixed rate.

use std::time::Duration;

use tokio::time::Instant;

/// The longest time between two attempts of a waiting call to get a token.
const MAX_WAIT: f64 = 3600.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EvenPace {
    /// Calls per second.
    rate: f64,
    /// Tokens that the bucket lacked after the last call.
    debt: f64,
    last: Option<Instant>,
}

impl EvenPace {
    pub(super) fn new(rate: f64) -> Self {
        Self {
            rate,
            debt: 0.0,
            last: None,
        }
    }

    /// The same calls at another rate.
    pub(super) fn with_rate(self, rate: f64) -> Self {
        Self { rate, ..self }
    }

    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    /// When the next call may be sent.
    pub(super) fn next(&self, now: Instant) -> Instant {
        let missing = self.debt_at(now) + 1.0 - even_burst(self.rate);
        match missing > 1e-6 {
            true => now + Duration::from_secs_f64((missing / self.rate).clamp(0.001, MAX_WAIT)),
            false => now,
        }
    }

    pub(super) fn send(&mut self, now: Instant) {
        self.debt = self.debt_at(now) + 1.0;
        self.last = Some(now);
    }

    /// Returns the token of a call that did not reach the cloud.
    pub(super) fn give_back(&mut self) {
        self.debt = (self.debt - 1.0).max(0.0);
    }

    fn debt_at(&self, now: Instant) -> f64 {
        let last = self.last.unwrap_or(now);
        (self.debt - now.duration_since(last).as_secs_f64() * self.rate).max(0.0)
    }
}

/// The capacity of the bucket of evenly paced calls. It compensates for timers that fire late.
pub(super) fn even_burst(rate: f64) -> f64 {
    1.0 + 0.004 * rate
}
