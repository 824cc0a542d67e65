//! One limit of the cloud: how it is paced, closed by a throttling error, probed and learned. No waiting here.

use std::time::Duration;

use tokio::time::Instant;

mod learn;

use super::Class;
use super::quota::{Budget, Quota, Rate};
use super::tally::{Now, Tally};
use learn::Closed;

/// Calls that are sent at once before anything is known of a limit.
const BURST: f64 = 16.0;

/// The same after another limit was throttled and nothing is learned yet.
const CAUTIOUS_BURST: f64 = 4.0;

/// Calls in flight at the start, at most, and after errors about concurrency at least.
const IN_FLIGHT: (u32, u32, u32) = (64, 256, 4);

/// How long other calls wait for the response to a probe.
const LEASE: Duration = Duration::from_secs(2);

/// Bounds of the skew guard.
const FIRST_GUARD: Duration = Duration::from_millis(300);
const MAX_GUARD: Duration = Duration::from_secs(4);

/// What all limits of an account share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Calls that passed before any limit was throttled.
    pub(super) passed: u32,
    /// Whether any limit was throttled.
    pub(super) throttled: bool,
    /// The quota learned last.
    pub(super) prior: Option<Quota>,
    /// How long after the end of a minute the cloud may still count for it, by its own clock.
    pub(super) guard: Duration,
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
    /// Whether no call can succeed before.
    pub(super) is_certain: bool,
}

/// A call in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    sent: Now,
    epoch: u64,
    round: u64,
    is_probe: bool,
}

/// The limit of an API or of the account.
#[derive(Debug)]
pub(super) struct Limit {
    /// The action, for the log.
    name: &'static str,
    is_account: bool,
    quota: Quota,
    closed: Option<Closed>,
    /// Token bucket.
    tokens: f64,
    filled: Option<Instant>,
    in_flight: u32,
    max_in_flight: u32,
    /// Number of throttling errors that counted, and of those about concurrency.
    epoch: u64,
    round: u64,
    passed_total: u32,
    /// When the limit opened, for how long it was closed before, and how many calls passed since.
    opened: Option<Instant>,
    was_closed: Duration,
    passed_since: u32,
    sent_by_minute: Tally,
    passed_by_minute: Tally,
    passed_by_second: Tally,
    /// The last minute that was rolled, and the last in which a call was refused.
    minute: i64,
    refused_in: i64,
}

impl Default for Limit {
    /// The limit of an account, which neither paces nor bounds calls until it is throttled.
    fn default() -> Self {
        Self {
            is_account: true,
            ..Self::of_api("account")
        }
    }
}

impl Limit {
    pub(super) fn of_api(action: &'static str) -> Self {
        Self {
            name: action,
            is_account: false,
            quota: Quota::Unknown,
            closed: None,
            tokens: BURST,
            filled: None,
            in_flight: 0,
            max_in_flight: IN_FLIGHT.0,
            epoch: 0,
            round: 0,
            passed_total: 0,
            opened: None,
            was_closed: Duration::ZERO,
            passed_since: 0,
            sent_by_minute: Tally::default(),
            passed_by_minute: Tally::default(),
            passed_by_second: Tally::default(),
            minute: 0,
            refused_in: 0,
        }
    }

    /// Whether calls have to wait for this limit.
    pub(super) fn is_limited(&self) -> bool {
        self.closed.is_some() || !matches!(self.quota, Quota::Unknown)
    }

    /// Takes notice of the time and of what other limits have learned. Called before [`Self::blocked`].
    pub(super) fn roll(&mut self, now: Now, shared: &Shared) {
        if self.closed.is_none() && !self.is_account {
            self.assume(now, shared);
        }
        if now.minute() == self.minute {
            return;
        }
        let ended = std::mem::replace(&mut self.minute, now.minute());
        let Quota::Minute(budget) = &mut self.quota else {
            return;
        };
        let used = self.sent_by_minute.of(ended);
        if self.refused_in != ended {
            budget.minute_passed(used);
        }
        // The cloud's minute may last longer than ours: one call finds out.
        if self.closed.is_none() && ended + 1 == now.minute() && used >= budget.calls / 5 * 4 {
            let mut closed = Closed::new(now, ended, now, FIRST_GUARD);
            closed.until = now.minute_began();
            closed.is_guarded = true;
            self.closed = Some(closed);
        }
    }

    /// Adopts the quota of another API, unless this API has been successful beyond it.
    fn assume(&mut self, now: Now, shared: &Shared) {
        let (Quota::Unknown, Some(prior)) = (&self.quota, &shared.prior) else {
            return;
        };
        let assumed = match prior {
            Quota::Rate(rate) if f64::from(self.passed_by_second.peak()) <= 1.5 * rate.pace => {
                Quota::Rate(Rate::assumed(rate.pace))
            }
            Quota::Minute(budget) if self.passed_by_minute.peak() <= budget.calls => {
                Quota::Minute(Budget::assumed(budget.calls))
            }
            _ => return,
        };
        self.quota = assumed;
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
        let until = |until, is_certain| Err(Blocked { until, is_certain });
        if self.in_flight >= self.max_in_flight && !self.is_account {
            return until(None, false);
        }
        if let Some(closed) = &self.closed {
            let lease = closed.probe.map(|sent| sent + LEASE);
            return match lease.filter(|lease| now.at < *lease) {
                Some(lease) => until(Some(lease), false),
                None if now.at < closed.opens(shared) => {
                    until(Some(closed.opens(shared)), closed.is_certain)
                }
                None => Ok(()),
            };
        }
        if let Quota::Minute(budget) = &self.quota {
            let used = self.sent_by_minute.of(now.minute());
            if used >= budget.calls && !(budget.exploring && self.in_flight == 0) {
                if budget.exploring {
                    return until(None, false);
                }
                return until(Some(now.next_minute() + shared.guard), true);
            }
            if class.is_read() && used < budget.calls {
                let opens = budget.read_opens(now, used, class, is_owed);
                if !opens.is_zero() {
                    return until(Some(now.at + opens), false);
                }
            }
        }
        let (pace, burst) = self.pace(shared);
        let missing = 1.0 - self.tokens_at(now, pace, burst);
        if missing > 1e-6 {
            let wait = Duration::from_secs_f64((missing / pace).min(3600.0));
            return until(Some(now.at + wait.max(Duration::from_millis(1))), false);
        }
        Ok(())
    }

    /// The refill rate and capacity of the token bucket.
    fn pace(&self, shared: &Shared) -> (f64, f64) {
        match &self.quota {
            // The capacity makes up for timers that fire late.
            Quota::Rate(rate) => (rate.pace, 1.0 + 0.004 * rate.pace),
            Quota::Unknown if self.is_account => (1e6, 1e6),
            Quota::Unknown if shared.throttled && shared.prior.is_none() => (20.0, CAUTIOUS_BURST),
            // Another API has taken many calls: this one will, too.
            Quota::Unknown if self.passed_total == 0 && shared.passed >= 32 => (300.0, BURST),
            Quota::Unknown if self.passed_total == 0 => (60.0, BURST),
            Quota::Unknown | Quota::Minute(_) => {
                (150.0 + 4.0 * f64::from(self.passed_total), BURST)
            }
        }
    }

    fn tokens_at(&self, now: Now, pace: f64, burst: f64) -> f64 {
        let elapsed = self.filled.map_or(3600.0, |filled| {
            now.at.saturating_duration_since(filled).as_secs_f64()
        });
        (self.tokens + elapsed * pace).min(burst)
    }

    /// Records that a call is sent, after [`Self::blocked`] has allowed it.
    pub(super) fn send(&mut self, now: Now, shared: &Shared) -> Ticket {
        let (pace, burst) = self.pace(shared);
        self.tokens = (self.tokens_at(now, pace, burst) - 1.0).max(0.0);
        self.filled = Some(now.at);
        if let Quota::Minute(budget) = &mut self.quota
            && budget.exploring
            && self.in_flight == 0
            && self.sent_by_minute.of(now.minute()) >= budget.calls
            && budget.explore()
        {
            self.quota = Quota::Unknown;
        }
        if let Quota::Rate(rate) = &mut self.quota {
            rate.sent(now.at);
        }
        self.in_flight += 1;
        self.sent_by_minute.add(now.minute());
        let probing = self.closed.as_mut();
        let is_probe = probing.is_some();
        if let Some(closed) = probing {
            closed.probe = Some(now.at);
        }
        Ticket {
            sent: now,
            epoch: self.epoch,
            round: self.round,
            is_probe,
        }
    }

    /// The call passed this limit.
    pub(super) fn passed(&mut self, ticket: Ticket, now: Now, shared: &mut Shared) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.max_in_flight = (self.max_in_flight + 1).min(IN_FLIGHT.1);
        self.passed_total = self.passed_total.saturating_add(1);
        self.passed_since = self.passed_since.saturating_add(1);
        shared.passed += u32::from(!shared.throttled && !self.is_account);
        self.passed_by_minute.add(ticket.sent.minute());
        let reopens = ticket.is_probe && ticket.epoch == self.epoch;
        if let Some(closed) = self.closed.take_if(|_| reopens) {
            self.reopen(&closed, now, shared);
        }
        self.passed_by_second.add(ticket.sent.second());
    }

    /// The cloud did not count the call.
    pub(super) fn unsent(&mut self, ticket: Ticket) {
        self.sent_by_minute.remove(ticket.sent.minute());
        self.unknown(ticket);
    }

    /// Whether the cloud counted the call is unknown.
    pub(super) fn unknown(&mut self, ticket: Ticket) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some(closed) = self.closed.as_mut().filter(|_| ticket.is_probe) {
            closed.probe = None;
        }
    }

    /// Too many operations are in progress.
    pub(super) fn too_many(&mut self, ticket: Ticket) {
        // Calls that are refused together count once.
        if ticket.round == self.round {
            self.round += 1;
            self.max_in_flight = (self.in_flight / 2).max(IN_FLIGHT.2);
        }
        self.unknown(ticket);
    }
}
