//! A learned quota: a rate, or a budget per minute.

use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::Priority;
use super::time::Now;

/// Calls are paced at this fraction of a measured rate.
const MARGIN: f64 = 0.99;

/// Minutes before a few calls more than a measured budget are tried.
const EXPLORE_AFTER: i64 = 4;

/// The learned quota of an API or account.
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
    /// The rate that was throttled. Without it, the pace doubles after every second that uses it up.
    ceiling: Option<f64>,
    /// Whether the pace was doubled since the last throttling error.
    is_doubled: bool,
    /// When the current period of observation began, and the calls that passed in it.
    began: Option<Instant>,
    passed: u32,
}

/// A quota per minute of the clock.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    pub(super) calls: u32,
    /// The minute from which calls beyond the budget are tried, first one, then two, then four.
    explores_from: i64,
    step: u32,
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
    /// A rate at which calls succeeded. If it was measured, further calls were throttled.
    pub(super) fn new(rate: f64, is_measured: bool) -> Self {
        Self {
            pace: (rate * MARGIN).max(0.01),
            ceiling: is_measured.then_some(rate),
            is_doubled: false,
            began: None,
            passed: 0,
        }
    }

    /// The same pace for another API, as an assumption.
    pub(super) fn assumed(&self) -> Self {
        Self::new(self.pace / MARGIN, false)
    }

    /// Records a call that passed, and raises the pace after a period that used it up without an error.
    pub(super) fn passed(&mut self, now: Instant) {
        self.passed += 1;
        let began = *self.began.get_or_insert(now);
        let elapsed = now.duration_since(began).as_secs_f64();
        let (seconds, calls, raised): (f64, f64, f64) = match self.ceiling {
            None => (1.0, 2.0, 2.0 * self.pace),
            Some(ceiling) if self.pace < 0.9 * ceiling => {
                (2.0, 4.0, (self.pace + 0.95 * ceiling) / 2.0)
            }
            Some(_) => (60.0, 30.0, 1.03 * self.pace),
        };
        if elapsed < seconds.max(calls / self.pace) {
            return;
        }
        if f64::from(self.passed) >= 0.95 * self.pace * elapsed {
            self.pace = raised;
            self.is_doubled |= self.ceiling.is_none();
            self.ceiling = self.ceiling.filter(|ceiling| raised < 1.1 * ceiling);
        }
        (self.began, self.passed) = (Some(now), 0);
    }

    /// Lowers the pace after a throttling error.
    pub(super) fn throttled(&mut self) {
        if std::mem::take(&mut self.is_doubled) {
            // The previous pace was not throttled.
            self.pace /= 2.0;
            self.ceiling = Some(self.pace / MARGIN);
        } else {
            self.ceiling = Some(self.pace);
            // After some seconds at this pace, calls probably arrived less evenly than they were sent.
            self.pace *= match f64::from(self.passed) / self.pace {
                5.0.. => 0.95,
                0.7.. => 0.85,
                _ => 0.65,
            };
        }
        self.pace = self.pace.max(0.01);
        (self.began, self.passed) = (None, 0);
    }
}

impl Budget {
    /// `calls` is measured as the calls that passed in a minute, or assumed from another API: then more may pass.
    pub(super) fn new(calls: u32, is_measured: bool, now: Now) -> Self {
        Self {
            calls: calls.max(1),
            explores_from: now.minute() + if is_measured { EXPLORE_AFTER } else { 0 },
            step: 1,
        }
    }

    /// Whether calls beyond the budget are tried.
    pub(super) fn explores(&self, now: Now) -> bool {
        now.minute() >= self.explores_from
    }

    /// Raises the budget once it is used up.
    pub(super) fn explore(&mut self) {
        self.calls = self.calls.saturating_add(self.step);
        self.step = self.step.saturating_mul(2);
    }

    /// The quota after a throttling error that followed `passed` calls of the minute. A budget that was not measured
    /// recently is discarded if fewer calls passed.
    pub(super) fn throttled(&self, passed: u32, now: Now) -> Quota {
        if self.explores(now) && passed < self.calls / 5 * 4 {
            return Quota::Unknown;
        }
        Quota::Minute(Self::new(passed.max(self.calls / 4 * 3), true, now))
    }

    /// How long a call must wait: after a burst, reads are spread over the minute except its last seconds.
    pub(super) fn wait(&self, now: Now, used: u32, priority: Priority) -> Duration {
        if !priority.is_read() {
            return Duration::ZERO;
        }
        let calls = f64::from(self.calls);
        let burst = (calls / 6.0).max(1.0);
        let at = (f64::from(used + 1) - burst) * 52.0 / (calls - burst).max(1.0);
        Duration::from_secs_f64(at.clamp(0.0, 60.0)).saturating_sub(now.since_minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_a_doubled_pace_is_halved() {
        let mut rate = Rate::new(10.0, false);
        for _ in 0..8 {
            rate.passed(Instant::now());
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        rate.throttled();
        assert!(rate.pace > 8.0, "{rate:?}");
        let mut rate = Rate::new(10.0, false);
        while rate.pace < 15.0 {
            rate.passed(Instant::now());
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        rate.throttled();
        assert!((9.0..=10.0).contains(&rate.pace), "{rate:?}");
    }
}
