//! One limit of the cloud: paced, closed by a throttling error, probed, and learned. No waiting here.

use std::time::Duration;

use tokio::time::Instant;

mod closed;
mod learn;

use super::quota::{Budget, Quota};
use super::tally::{Now, Tally};
use super::{ACCOUNT, Class};
use closed::{Closed, FIRST_GUARD};

/// Calls that are sent at once before anything is known of a limit.
const BURST: f64 = 16.0;

/// Calls in flight before the first response, and after a throttling error: all of them may be refused. More are sent
/// one by one, because a response may also take long.
const UNPROVEN: u32 = 20;
const UNPROVEN_PAUSE: Duration = Duration::from_millis(100);

/// Calls in flight at the start, at most, and after errors about concurrency at least.
const IN_FLIGHT: (u32, u32, u32) = (64, 256, 4);

/// How long other calls wait for the response to a probe.
const LEASE: Duration = Duration::from_secs(2);

/// What all limits of an account share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Calls that passed before any limit was throttled.
    passed: u32,
    throttled: bool,
    /// The quota of an API that was learned last.
    prior: Option<Quota>,
    /// How long the cloud, by its clock, may still count for a minute that has ended.
    guard: Duration,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            passed: 0,
            throttled: false,
            prior: None,
            guard: FIRST_GUARD,
        }
    }
}

/// Why a call may not be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocked {
    /// When it may be sent; none if that depends on the response to another call.
    pub(super) until: Option<Instant>,
    /// Whether no call can pass before.
    pub(super) is_certain: bool,
}

/// A call in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    sent: Now,
    /// The throttling errors that preceded the call.
    epoch: u64,
    is_probe: bool,
    /// Whether the call is one beyond the budget.
    explores: bool,
}

/// The limit of an API or of the account.
#[derive(Debug)]
pub(super) struct Limit {
    /// The action, or [`ACCOUNT`].
    name: &'static str,
    quota: Quota,
    closed: Option<Closed>,
    /// The token bucket, and when it was filled last.
    tokens: f64,
    filled: Option<Instant>,
    in_flight: u32,
    max_in_flight: u32,
    epoch: u64,
    passed: u32,
    /// When the limit opened, for how long it was closed before, and how many calls passed since.
    opened: Option<Instant>,
    was_closed: Duration,
    passed_since: u32,
    /// Calls that were sent and not refused.
    by_minute: Tally,
    by_second: Tally,
    /// The minute of the last call of [`Limit::roll`].
    minute: i64,
}

impl Default for Limit {
    /// The limit of an account, which neither paces nor bounds calls until it is throttled.
    fn default() -> Self {
        Self::of_api(ACCOUNT)
    }
}

impl Limit {
    pub(super) fn of_api(name: &'static str) -> Self {
        Self {
            name,
            quota: Quota::Unknown,
            closed: None,
            tokens: BURST,
            filled: None,
            in_flight: 0,
            max_in_flight: IN_FLIGHT.0,
            epoch: 0,
            passed: 0,
            opened: None,
            was_closed: Duration::ZERO,
            passed_since: 0,
            by_minute: Tally::default(),
            by_second: Tally::default(),
            minute: 0,
        }
    }

    fn is_account(&self) -> bool {
        self.name == ACCOUNT
    }

    /// Whether calls may have to wait for this limit.
    pub(super) fn is_limited(&self) -> bool {
        self.closed.is_some() || !matches!(self.quota, Quota::Unknown)
    }

    /// The time between two calls at the learned rate, if there is one.
    pub(super) fn spacing(&self) -> Duration {
        match &self.quota {
            Quota::Rate(rate) => Duration::from_secs_f64(1.0 / rate.pace),
            Quota::Unknown | Quota::Minute(_) => Duration::ZERO,
        }
    }

    /// Notes the time and what other limits have learned. Precedes [`Limit::blocked`].
    pub(super) fn roll(&mut self, now: Now, shared: &Shared) {
        if self.closed.is_none() && !self.is_account() {
            self.assume(now, shared);
        }
        let ended = std::mem::replace(&mut self.minute, now.minute());
        let Quota::Minute(budget) = &mut self.quota else {
            return;
        };
        if ended == now.minute() {
            return;
        }
        let used = self.by_minute.of(ended);
        budget.minute_ended(used);
        // The cloud's minute may end later than ours: one call finds out.
        if self.closed.is_none() && ended + 1 == now.minute() && used >= budget.calls / 5 * 4 {
            self.closed = Some(Closed::until_minute(ended, now));
        }
    }

    /// Adopts the quota of another API, unless this one has taken more calls.
    fn assume(&mut self, now: Now, shared: &Shared) {
        let (Quota::Unknown, Some(prior)) = (&self.quota, &shared.prior) else {
            return;
        };
        self.quota = match prior {
            Quota::Rate(rate) if f64::from(self.by_second.peak) <= 1.5 * rate.pace => {
                Quota::Rate(rate.assumed())
            }
            Quota::Minute(budget) if self.by_minute.peak <= budget.calls => {
                Quota::Minute(Budget::new(budget.calls, false))
            }
            _ => return,
        };
        self.opened = Some(now.at);
    }

    /// Whether a call may be sent now.
    pub(super) fn blocked(
        &self,
        now: Now,
        class: Class,
        is_owed: bool,
        shared: &Shared,
    ) -> Result<(), Blocked> {
        let blocked = |until, is_certain| Err(Blocked { until, is_certain });
        if self.in_flight >= self.max_in_flight && !self.is_account() {
            return blocked(None, false);
        }
        let next = self.filled.map_or(now.at, |sent| sent + UNPROVEN_PAUSE);
        let is_unproven = self.in_flight >= UNPROVEN.saturating_add(shared.passed);
        if is_unproven && now.at < next && !self.is_account() {
            return blocked(Some(next), false);
        }
        if let Some(closed) = &self.closed {
            let lease = closed.probe.map(|sent| sent + LEASE);
            let opens = closed.opens(shared.guard);
            return match lease.filter(|lease| now.at < *lease) {
                Some(lease) => blocked(Some(lease), false),
                None if now.at < opens => blocked(Some(opens), closed.is_certain),
                None => Ok(()),
            };
        }
        if let Quota::Minute(budget) = &self.quota {
            let used = self.by_minute.of(now.minute());
            if used < budget.calls {
                let wait = budget.read_wait(now, used, class, is_owed);
                if class.is_read() && !wait.is_zero() {
                    return blocked(Some(now.at + wait), false);
                }
            } else if !budget.exploring {
                return blocked(Some(now.next_minute() + shared.guard), true);
            } else if self.in_flight > 0 {
                return blocked(None, false);
            }
        }
        let (pace, _) = self.pace(shared);
        let missing = 1.0 - self.tokens_at(now, shared);
        if missing > 1e-6 {
            let wait = Duration::from_secs_f64((missing / pace).clamp(0.001, 3600.0));
            return blocked(Some(now.at + wait), false);
        }
        Ok(())
    }

    /// Calls per second, and the capacity of the token bucket.
    fn pace(&self, shared: &Shared) -> (f64, f64) {
        match &self.quota {
            // The capacity makes up for timers that fire late.
            Quota::Rate(rate) => (rate.pace, 1.0 + 0.004 * rate.pace),
            Quota::Unknown if self.is_account() => (1e6, 1e6),
            // Another API is throttled, and its quota is not known yet.
            Quota::Unknown if shared.throttled && shared.prior.is_none() => (20.0, 4.0),
            // Another API has taken many calls: this one will, too.
            Quota::Unknown if self.passed == 0 && shared.passed >= 32 => (300.0, 3.0 * BURST),
            Quota::Unknown if self.passed == 0 => (60.0, BURST),
            Quota::Unknown | Quota::Minute(_) => (150.0 + 4.0 * f64::from(self.passed), BURST),
        }
    }

    fn tokens_at(&self, now: Now, shared: &Shared) -> f64 {
        let (pace, burst) = self.pace(shared);
        let elapsed = self
            .filled
            .map_or(Duration::MAX, |filled| now.at.duration_since(filled));
        (self.tokens + elapsed.as_secs_f64() * pace).min(burst)
    }

    /// Records that a call is sent, after [`Limit::blocked`] has allowed it.
    pub(super) fn send(&mut self, now: Now, shared: &Shared) -> Ticket {
        self.tokens = (self.tokens_at(now, shared) - 1.0).max(0.0);
        self.filled = Some(now.at);
        let mut explores = false;
        match &mut self.quota {
            Quota::Rate(rate) => rate.sent(now.at),
            Quota::Minute(budget) => {
                let is_used_up = self.by_minute.of(now.minute()) >= budget.calls;
                explores = is_used_up && self.closed.is_none();
                if explores && budget.explore() {
                    self.quota = Quota::Unknown;
                }
            }
            Quota::Unknown => {}
        }
        if let Some(closed) = &mut self.closed {
            closed.probe = Some(now.at);
            let rate = || self.by_second.rate_at(closed.sent);
            closed.rate = closed.rate.or_else(|| Some(rate()));
        }
        self.in_flight += 1;
        self.by_minute.add(now.minute());
        self.by_second.add(now.second());
        Ticket {
            sent: now,
            epoch: self.epoch,
            is_probe: self.closed.is_some(),
            explores,
        }
    }
}
