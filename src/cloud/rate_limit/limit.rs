//! One limit of the cloud: paces calls, closes on a throttling error, probes, and learns its quota. Does not wait.

use std::time::Duration;

use tokio::time::Instant;

mod learn;

use super::Priority;
use super::even_pace::{EvenPace, even_burst};
use super::quota::{Budget, Quota};
use super::report::{LearnedQuota, LimitReport};
use super::time::{Now, Tally};

/// Calls that are sent at once while a limit is unknown.
const BURST: f64 = 16.0;

/// Calls in flight before the first response, and after a throttling error: all of them may be throttled. More are sent
/// one by one, because a response may also be slow.
const UNPROVEN: u32 = 20;
const UNPROVEN_PAUSE: Duration = Duration::from_millis(100);

/// Maximum of calls in flight, and its lower bound after errors about concurrency.
const IN_FLIGHT: (u32, u32) = (256, 4);

/// How long other calls wait for the response to a probe.
const LEASE: Duration = Duration::from_secs(2);

/// No call is sent for so long after the minute ends, because the cloud's clock may differ.
const GUARD: Duration = Duration::from_millis(300);

/// State that the limits of all APIs share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Calls that passed since the last throttling error.
    passed: u32,
    throttled: bool,
    /// The most recently learned quota of an API.
    prior: Option<Quota>,
    /// How long the cloud continued a minute that had ended by the local clock.
    skew: Duration,
}

/// When a call may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Earliest {
    pub(super) at: Instant,
    /// Whether responses to other calls cannot make it earlier.
    pub(super) is_certain: bool,
}

/// The limit of an API or of the account.
#[derive(Debug, Default)]
pub(super) struct Limit {
    /// The action, or `account`.
    name: &'static str,
    /// The rate that an operator permits.
    configured: Option<EvenPace>,
    quota: Quota,
    closed: Option<Closed>,
    /// When the limit closed last. Calls sent before are not evidence about the time after.
    closed_at: Option<Instant>,
    /// When the last call was sent, and the tokens that the bucket lacked then.
    last: Option<Instant>,
    debt: f64,
    in_flight: u32,
    max_in_flight: u32,
    sent: Tally,
    /// The last throttling error.
    pub(super) last_error: Option<String>,
}

/// A limit that has throttled a call, or may do so because a full minute has just ended.
#[derive(Debug)]
struct Closed {
    /// When the throttled call was sent, or the full minute ended.
    sent: Now,
    /// Calls per second at that time, counted when the other calls in flight have ended.
    rate: Option<f64>,
    /// When a probe may be sent.
    until: Instant,
    /// Throttled probes, and those of them after the minute ended.
    probes: u32,
    late: u32,
    /// When the probe in flight was sent.
    probe: Option<Instant>,
}

impl Limit {
    pub(super) fn new(name: &'static str, configured: Option<f64>) -> Self {
        Self {
            name,
            configured: configured.map(EvenPace::new),
            max_in_flight: IN_FLIGHT.0,
            ..Self::default()
        }
    }

    /// Whether a rate is configured, or a throttling error, or one of another limit, has shown that there is a quota.
    pub(super) fn is_limited(&self) -> bool {
        self.configured.is_some() || self.closed.is_some() || !matches!(self.quota, Quota::Unknown)
    }

    /// The state, without the number of waiting calls.
    pub(super) fn report(&self, now: Instant) -> LimitReport {
        let closed = self.closed.as_ref();
        LimitReport {
            action: self.name,
            waiting: 0,
            in_flight: self.in_flight,
            configured: self.configured.map(|pace| pace.rate()),
            quota: match &self.quota {
                Quota::Unknown => LearnedQuota::Unknown,
                Quota::Rate(rate) => LearnedQuota::PerSecond(rate.pace),
                Quota::Minute(budget) => LearnedQuota::PerMinute(budget.calls),
            },
            closed_for: closed.map(|closed| closed.until.saturating_duration_since(now)),
        }
    }

    pub(super) fn spacing(&self) -> Duration {
        let learned = match &self.quota {
            Quota::Rate(rate) => Some(rate.pace),
            Quota::Unknown | Quota::Minute(_) => None,
        };
        let configured = self.configured.map(|pace| pace.rate());
        let rates = learned.into_iter().chain(configured);
        let rate = rates.reduce(f64::min);
        rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate))
    }

    /// Updates the limit for the current time and the quotas of other limits. Precedes [`Limit::earliest`].
    pub(super) fn update(&mut self, now: Now, shared: &Shared) {
        if self.closed.is_some() {
            return;
        }
        self.assume(now, shared);
        let Quota::Minute(budget) = &self.quota else {
            return;
        };
        // The cloud's minute may end later than the local one: a probe determines it.
        let was_full = self.sent.in_minute(now.minute() - 1) >= budget.calls / 5 * 4;
        if was_full && self.sent.in_minute(now.minute()) == 0 {
            let ended = now.minute_ended();
            self.closed_at = Some(ended.at);
            self.closed = Some(Closed::new(ended, ended.at + shared.guard()));
        }
    }

    /// Adopts the quota of another API.
    fn assume(&mut self, now: Now, shared: &Shared) {
        let (Quota::Unknown, Some(prior)) = (&self.quota, &shared.prior) else {
            return;
        };
        let used = self.sent.in_minute(now.minute());
        self.quota = match prior {
            Quota::Minute(budget) => Quota::Minute(Budget::new(budget.calls.max(used), false, now)),
            Quota::Rate(rate) if self.sent.peak() <= 1.5 * rate.pace => Quota::Rate(rate.assumed()),
            // This API has accepted a higher rate.
            Quota::Rate(_) | Quota::Unknown => return,
        };
    }

    /// When a call may be sent; in the past or now if immediately.
    pub(super) fn earliest(&self, now: Now, priority: Priority, shared: &Shared) -> Earliest {
        let learned = self.learned_earliest(now, priority, shared);
        Earliest {
            // Probes count too.
            at: learned.at.max(self.configured_next(now)),
            ..learned
        }
    }

    fn configured_next(&self, now: Now) -> Instant {
        self.configured.map_or(now.at, |pace| pace.next(now.at))
    }

    /// Whether the configured rate delays a call longer than the learned quota does.
    pub(super) fn waits_for_configured(
        &self,
        now: Now,
        priority: Priority,
        shared: &Shared,
    ) -> bool {
        let configured = self.configured_next(now);
        configured > now.at && configured >= self.learned_earliest(now, priority, shared).at
    }

    /// Replaces the configured rate.
    pub(super) fn configure(&mut self, rate: Option<f64>) {
        let pace = self.configured;
        self.configured =
            rate.map(|rate| pace.map_or(EvenPace::new(rate), |pace| pace.with_rate(rate)));
    }

    fn learned_earliest(&self, now: Now, priority: Priority, shared: &Shared) -> Earliest {
        let earliest = |at, is_certain| Earliest { at, is_certain };
        let last = self.last.unwrap_or(now.at);
        let mut at = now.at;
        let unproven = UNPROVEN.saturating_add(shared.passed);
        if self.in_flight >= self.max_in_flight.min(unproven) {
            at = last + UNPROVEN_PAUSE;
        }
        if let Some(closed) = &self.closed {
            let probe = closed.probe.filter(|sent| now.at < *sent + LEASE);
            return match probe {
                Some(sent) => earliest(sent + LEASE, false),
                None => earliest(at.max(closed.until), true),
            };
        }
        if let Quota::Minute(budget) = &self.quota {
            let used = self.sent.in_minute(now.minute());
            if used < budget.calls {
                at = at.max(now.at + budget.wait(now, used, priority));
            } else if !budget.explores(now) {
                return earliest(now.next_minute() + shared.guard(), true);
            } else if self.in_flight > 0 {
                at = at.max(last + LEASE);
            }
        }
        let (pace, burst) = self.pace(shared);
        let missing = self.debt_at(now, pace) + 1.0 - burst;
        if missing > 1e-6 {
            at = at.max(now.at + Duration::from_secs_f64((missing / pace).clamp(0.001, 3600.0)));
        }
        earliest(at, false)
    }

    /// Calls per second, and the capacity of the token bucket.
    fn pace(&self, shared: &Shared) -> (f64, f64) {
        match &self.quota {
            Quota::Rate(rate) => (rate.pace, even_burst(rate.pace)),
            // Another API is throttled, and its quota is not known yet.
            Quota::Unknown if shared.throttled && shared.prior.is_none() => (20.0, 4.0),
            // This API probably accepts the rate that other APIs have accepted.
            Quota::Unknown | Quota::Minute(_) => (60.0 + 2.5 * f64::from(shared.passed), BURST),
        }
    }

    fn debt_at(&self, now: Now, pace: f64) -> f64 {
        let last = self.last.unwrap_or(now.at);
        (self.debt - now.at.duration_since(last).as_secs_f64() * pace).max(0.0)
    }

    /// Records that a call is sent, after [`Limit::earliest`] has allowed it.
    pub(super) fn send(&mut self, now: Now, shared: &Shared) {
        self.debt = self.debt_at(now, self.pace(shared).0) + 1.0;
        self.last = Some(now.at);
        if let Some(pace) = &mut self.configured {
            pace.send(now.at);
        }
        if let Some(closed) = &mut self.closed {
            closed.probe = Some(now.at);
            closed.rate = closed.rate.or_else(|| Some(self.sent.rate_at(closed.sent)));
        } else if let Quota::Minute(budget) = &mut self.quota
            && self.sent.in_minute(now.minute()) >= budget.calls
        {
            budget.explore();
        }
        self.in_flight += 1;
        self.sent.add(now);
    }
}

impl Shared {
    fn guard(&self) -> Duration {
        GUARD.max(self.skew)
    }
}

impl Closed {
    fn new(sent: Now, until: Instant) -> Self {
        Self {
            sent,
            rate: None,
            until,
            probes: 0,
            late: 0,
            probe: None,
        }
    }
}
