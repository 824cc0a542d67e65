//! What is known of a quota: a rate, or a budget for each minute.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::Class;
use super::tally::Now;

/// Calls are paced at this part of a rate that was measured.
const MARGIN: f64 = 0.99;

/// Minutes that use up a budget before a few calls more are tried.
const EXPLORE_AFTER: u32 = 3;

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
    /// The rate that was refused. Without it the pace doubles every second that uses it up.
    ceiling: Option<f64>,
    /// Whether the pace was doubled since a call was refused.
    is_doubled: bool,
    /// When the current period of observation began, and the calls sent in it.
    began: Option<Instant>,
    sent: u32,
}

/// A quota per minute of the clock.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    pub(super) calls: u32,
    /// Calls beyond the budget are tried, first one, then two, then four.
    pub(super) exploring: bool,
    step: u32,
    /// Minutes that used up the budget without an error.
    clean: u32,
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
    /// A rate at which calls were successful. If it was measured, more calls were refused.
    pub(super) fn new(rate: f64, is_measured: bool) -> Self {
        Self {
            pace: (rate * MARGIN).max(0.01),
            ceiling: is_measured.then_some(rate),
            is_doubled: false,
            began: None,
            sent: 0,
        }
    }

    /// The same pace for another API, as an assumption.
    pub(super) fn assumed(&self) -> Self {
        Self::new(self.pace / MARGIN, false)
    }

    /// Records a call, and raises the pace after a period that used it up without an error.
    pub(super) fn sent(&mut self, now: Instant) {
        self.sent += 1;
        let began = *self.began.get_or_insert(now);
        let is_low = self
            .ceiling
            .is_some_and(|ceiling| self.pace < 0.9 * ceiling);
        let (seconds, calls): (f64, f64) = match self.ceiling {
            None => (1.0, 2.0),
            Some(_) if is_low => (2.0, 4.0),
            Some(_) => (60.0, 30.0),
        };
        let elapsed = now.duration_since(began).as_secs_f64();
        if elapsed < seconds.max(calls / self.pace) {
            return;
        }
        if f64::from(self.sent) >= 0.95 * self.pace * elapsed {
            match self.ceiling {
                Some(ceiling) if is_low => self.pace += (0.95 * ceiling - self.pace) / 2.0,
                Some(ceiling) if self.pace < 1.1 * ceiling => self.pace *= 1.03,
                Some(_) => self.ceiling = None,
                None => {
                    self.pace *= 2.0;
                    self.is_doubled = true;
                }
            }
        }
        (self.began, self.sent) = (Some(now), 0);
    }

    /// Takes back a call that was not sent after all.
    pub(super) fn unsent(&mut self) {
        self.sent = self.sent.saturating_sub(1);
    }

    /// Lowers the pace after a throttling error. So many calls passed since the limit opened.
    pub(super) fn refused(&mut self, passed: u32, open: Duration, closed: Duration) {
        let (pace, passed) = (self.pace, f64::from(passed));
        let (open, closed) = (open.as_secs_f64(), closed.as_secs_f64());
        if std::mem::take(&mut self.is_doubled) {
            // The pace before that was not refused.
            self.pace = pace / 2.0;
            self.ceiling = Some(self.pace / MARGIN);
        } else {
            self.ceiling = Some(pace);
            self.pace = if open >= 5.0 {
                // Probably calls that did not arrive as evenly as they were sent.
                (passed / open).clamp(0.93 * pace, 0.97 * pace)
            } else if open >= 1.0 {
                (passed / open).clamp(0.5 * pace, 0.9 * pace)
            } else {
                // A token bucket was refilled also while the limit was closed.
                (passed / (open + closed)).clamp(0.5 * pace, 0.85 * pace)
            };
        }
        self.pace = self.pace.max(0.01);
        (self.began, self.sent) = (None, 0);
    }
}

impl Budget {
    /// The calls that passed in a minute. If they were not measured, more may pass.
    pub(super) fn new(calls: u32, is_measured: bool) -> Self {
        Self {
            calls: calls.max(1),
            exploring: !is_measured,
            step: 1,
            clean: 0,
        }
    }

    /// Records a throttling error after so many calls of the minute.
    pub(super) fn refused(&mut self, passed: u32) {
        *self = Self::new(passed.max(self.calls / 4 * 3), true);
    }

    /// Records the end of a minute.
    pub(super) fn minute_ended(&mut self, used: u32) {
        self.clean += u32::from(used >= self.calls);
        self.exploring |= self.clean > EXPLORE_AFTER;
    }

    /// Raises the budget once all calls within it have passed. Returns whether it was raised so often
    /// that it does not exist.
    pub(super) fn explore(&mut self) -> bool {
        self.calls += self.step;
        self.step *= 2;
        self.step > 32
    }

    /// Takes back a step, for a call that was not sent after all.
    pub(super) fn unexplore(&mut self) {
        self.step = (self.step / 2).max(1);
        self.calls = self.calls.saturating_sub(self.step).max(1);
    }

    /// How long a read has to wait: after a burst, reads are spread over the minute.
    pub(super) fn read_wait(&self, now: Now, used: u32, class: Class, is_owed: bool) -> Duration {
        // A quarter is reserved for polls, and the last seconds for late ones.
        let part = if class == Class::List && !is_owed {
            0.75
        } else {
            1.0
        };
        let usable = f64::from(self.calls) * part;
        let burst = (usable / 6.0).max(1.0);
        let at = (f64::from(used + 1) - burst) * 52.0 / (usable - burst).max(1.0);
        Duration::from_secs_f64(at.clamp(0.0, 60.0)).saturating_sub(now.since_minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_pace_that_was_doubled_is_halved() {
        let mut rate = Rate::new(10.0, false);
        rate.refused(8, Duration::from_millis(900), Duration::ZERO);
        assert!(rate.pace > 8.0, "{rate:?}");
        let mut rate = Rate::new(10.0, false);
        while rate.pace < 15.0 {
            rate.sent(Instant::now());
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        rate.refused(8, Duration::from_millis(900), Duration::ZERO);
        assert!((9.0..=10.0).contains(&rate.pace), "{rate:?}");
    }
}
