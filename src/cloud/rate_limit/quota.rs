//! What is known of a quota: a rate, or a budget for each minute.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::Class;
use super::tally::Now;

/// Calls are paced at this part of a rate that was measured.
const MARGIN: f64 = 0.985;

/// The quota of an API or account as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) enum Quota {
    /// Never throttled, and no other API was.
    #[default]
    Unknown,
    Rate(Rate),
    Minute(Budget),
}

/// A quota per second, or a token bucket.
#[derive(Debug, Clone)]
pub(super) struct Rate {
    /// Calls per second.
    pub(super) pace: f64,
    /// The pace that was refused. Without it the pace doubles every second that uses it up.
    ceiling: Option<f64>,
    /// By how much the next increase raises the pace.
    step: f64,
    period: Option<Instant>,
    sent: u32,
}

/// A quota per minute of the clock.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    pub(super) calls: u32,
    /// Calls beyond the budget are tried, first one, then two, then four.
    pub(super) exploring: bool,
    step: u32,
    /// Minutes that used up the budget without an error, and how many it takes to explore again.
    clean: u32,
    patience: u32,
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Rate(rate) => write!(f, "{:.2} calls per second", rate.pace),
            Self::Minute(budget) => write!(f, "{} calls per minute", budget.calls),
        }
    }
}

impl Rate {
    /// A rate at which calls were successful until one more was refused.
    pub(super) fn measured(rate: f64) -> Self {
        Self {
            ceiling: Some(rate),
            ..Self::assumed(rate)
        }
    }

    /// A rate that may be far too low.
    pub(super) fn assumed(rate: f64) -> Self {
        Self {
            pace: (rate * MARGIN).max(0.01),
            ceiling: None,
            step: 0.02,
            period: None,
            sent: 0,
        }
    }

    /// Records a call, and raises the pace after a period that used it up without an error.
    pub(super) fn sent(&mut self, now: Instant) {
        self.sent += 1;
        let begin = *self.period.get_or_insert(now);
        let length = match self.ceiling {
            None => 1.0_f64.max(2.0 / self.pace),
            Some(ceiling) if self.pace < 0.9 * ceiling => 2.0_f64.max(4.0 / self.pace),
            Some(_) => 30.0_f64.max(30.0 / self.pace),
        };
        let elapsed = now.duration_since(begin).as_secs_f64();
        if elapsed < length {
            return;
        }
        let used_up = f64::from(self.sent) >= 0.8 * self.pace * elapsed;
        (self.period, self.sent) = (Some(now), 0);
        if !used_up {
            return;
        }
        match self.ceiling {
            None => self.pace *= 2.0,
            Some(ceiling) if self.pace < 0.9 * ceiling => {
                self.pace += (0.95 * ceiling - self.pace) / 2.0;
            }
            Some(ceiling) => {
                self.pace *= 1.0 + self.step;
                if self.pace > ceiling {
                    self.step = (self.step * 2.0).min(0.5);
                }
            }
        }
    }

    /// Lowers the pace after a throttling error; so many calls passed since the limit opened.
    pub(super) fn refused(&mut self, passed: u32, open: Duration, closed: Duration) {
        let pace = self.pace;
        if self.ceiling.is_none() {
            self.pace = pace / 2.0;
            self.ceiling = Some(self.pace / MARGIN);
        } else {
            let (passed, open) = (f64::from(passed), open.as_secs_f64());
            self.pace = if open >= 1.0 {
                (passed / open).clamp(0.5 * pace, 0.96 * pace)
            } else {
                // A token bucket was refilled also while the limit was closed.
                (passed / (open + closed.as_secs_f64())).clamp(0.5 * pace, 0.85 * pace)
            };
            self.pace = self.pace.max(0.01);
            self.ceiling = Some(pace);
        }
        self.step = 0.02;
        (self.period, self.sent) = (None, 0);
    }
}

impl Budget {
    /// The calls that passed in a minute until one more was refused.
    pub(super) fn measured(calls: u32) -> Self {
        Self {
            calls: calls.max(1),
            exploring: false,
            step: 1,
            clean: 0,
            patience: 2,
        }
    }

    /// The budget of another API.
    pub(super) fn assumed(calls: u32) -> Self {
        Self {
            exploring: true,
            ..Self::measured(calls)
        }
    }

    /// Records a throttling error after so many successful calls of the minute.
    pub(super) fn refused(&mut self, passed: u32) {
        if passed + 1 >= self.calls {
            self.patience = (self.patience * 2).min(16);
        }
        self.calls = passed.max(self.calls / 4 * 3).max(1);
        (self.exploring, self.step, self.clean) = (false, 1, 0);
    }

    /// Records that a minute ended in which so many calls were sent and none was refused.
    pub(super) fn minute_passed(&mut self, used: u32) {
        if used >= self.calls {
            self.clean += 1;
            self.exploring |= self.clean >= self.patience;
        }
    }

    /// Raises the budget once all calls within it have passed. Returns whether it was raised so often
    /// that there is no such quota.
    pub(super) fn explore(&mut self) -> bool {
        self.calls += self.step;
        self.step *= 2;
        self.step > 32
    }

    /// When a read may be sent: reads are spread over the minute, after an initial burst.
    pub(super) fn read_opens(&self, now: Now, used: u32, class: Class, is_owed: bool) -> Duration {
        const SPREAD: f64 = 52.0;
        let whole = f64::from(self.calls);
        // A quarter is reserved for polls.
        let usable = if class == Class::List && !is_owed {
            whole * 0.75
        } else {
            whole
        };
        let burst = (usable / 6.0).max(1.0);
        let later = f64::from(used + 1) - burst;
        let at = later * SPREAD / (usable - burst).max(1.0);
        let at = Duration::from_secs_f64(at.clamp(0.0, 60.0));
        at.saturating_sub(now.since_minute())
    }
}
