//! How a limit is closed by throttling errors, and what is learned when it opens.

use std::time::Duration;

use tokio::time::Instant;

use super::super::quota::{Budget, Quota, Rate};
use super::super::tally::Now;
use super::{FIRST_GUARD, Limit, MAX_GUARD, Shared, Ticket};

/// Refused probes for so long mean that the limit stays closed until the minute ends.
const CLOSED_FOR_THE_MINUTE: Duration = Duration::from_millis(6500);

/// A limit that has refused a call, or may do so because a full minute has just ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Closed {
    /// When the refused call was sent, and the minute that it counts for.
    sent: Now,
    minute: i64,
    since: Instant,
    pub(super) until: Instant,
    /// The skew guard comes on top of `until`.
    pub(super) is_guarded: bool,
    pub(super) is_certain: bool,
    pause: Duration,
    /// Refused probes, and those of them after the minute ended.
    probes: u32,
    late: u32,
    /// When the probe in flight was sent.
    pub(super) probe: Option<Instant>,
}

impl Closed {
    pub(super) fn new(sent: Now, minute: i64, now: Now, pause: Duration) -> Self {
        Self {
            sent,
            minute,
            since: now.at,
            until: now.at,
            is_guarded: false,
            is_certain: false,
            pause,
            probes: 0,
            late: 0,
            probe: None,
        }
    }

    /// A probe was refused, too.
    pub(super) fn again(mut self, now: Now) -> Self {
        self.probe = None;
        self.probes += 1;
        self.pause *= 2;
        if now.minute() != self.minute {
            if self.late == 0 {
                self.pause = FIRST_GUARD;
            }
            self.late += 1;
        }
        self
    }

    pub(super) fn opens(&self, shared: &Shared) -> Instant {
        if self.is_guarded {
            self.until + shared.guard
        } else {
            self.until
        }
    }
}

impl Limit {
    /// The limit refused the call; `wait` is what the cloud asks for.
    pub(in super::super) fn refused(
        &mut self,
        ticket: Ticket,
        now: Now,
        wait: Option<Duration>,
        shared: &mut Shared,
    ) {
        self.unsent(ticket);
        // Calls that were in flight when the limit closed say nothing new.
        if ticket.epoch != self.epoch {
            return;
        }
        self.epoch += 1;
        self.refused_in = now.minute();
        shared.throttled |= !self.is_account;
        shared.passed = 0;
        let mut closed = match self.closed.take() {
            Some(closed) => closed.again(now),
            None => self.close(ticket, now),
        };
        self.conclude(&closed, now, wait, shared);
        let is_minute = matches!(self.quota, Quota::Minute(_));
        if is_minute && closed.late > 0 {
            let guard = now.since_minute() + closed.pause;
            shared.guard = shared.guard.max(guard.min(MAX_GUARD));
        }
        closed.is_certain = true;
        closed.is_guarded = false;
        if let Some(wait) = wait {
            closed.until = now.at + wait + Duration::from_millis(20);
        } else if is_minute && closed.late == 0 {
            (closed.until, closed.is_guarded) = (now.next_minute(), true);
        } else {
            closed.is_certain = false;
            closed.until = now.at + closed.pause;
            if now.next_minute() < closed.until {
                (closed.until, closed.is_guarded) = (now.next_minute(), true);
            }
        }
        self.closed = Some(closed);
    }

    /// Closes the limit after the refusal of this call.
    fn close(&mut self, ticket: Ticket, now: Now) -> Closed {
        let open = now.at.duration_since(self.opened.unwrap_or(now.at));
        let mut pause = Duration::from_secs(1);
        let minute = ticket.sent.minute();
        match &mut self.quota {
            Quota::Rate(rate) => {
                rate.refused(self.passed_since, open, self.was_closed);
                pause = Duration::from_secs_f64((2.0 / rate.pace).clamp(0.2, 1.0));
                tracing::debug!(
                    cloud.action = self.name,
                    pace = rate.pace,
                    "call throttled, pace lowered"
                );
            }
            Quota::Minute(budget) => {
                let passed = self.passed_by_minute.of(minute);
                // Throttled far below the budget of another API, which does not apply then.
                if budget.exploring && self.sent_by_minute.of(minute) < budget.calls / 5 * 4 {
                    self.quota = Quota::Unknown;
                } else {
                    budget.refused(passed);
                }
            }
            Quota::Unknown => tracing::warn!(
                cloud.action = self.name,
                "cloud throttles this API; learning its quota"
            ),
        }
        Closed::new(ticket.sent, minute, now, pause)
    }

    /// Concludes from refusals that the limit stays closed until the minute ends.
    fn conclude(&mut self, closed: &Closed, now: Now, wait: Option<Duration>, shared: &mut Shared) {
        const SLACK: Duration = Duration::from_millis(2500);
        if matches!(self.quota, Quota::Minute(_)) {
            return;
        }
        let used = self.sent_by_minute.of(closed.minute);
        let lasted = now.at.duration_since(closed.since);
        let is_stated = wait.is_some_and(|wait| {
            let (opens, boundary) = (now.at + wait, now.next_minute());
            wait > SLACK && opens + SLACK > boundary && opens < boundary + SLACK
        });
        let is_likely = match &shared.prior {
            Some(Quota::Minute(prior)) => {
                lasted >= Duration::from_millis(900)
                    || used.abs_diff(prior.calls) <= prior.calls / 5
            }
            _ => lasted >= CLOSED_FOR_THE_MINUTE,
        };
        if is_stated || is_likely && closed.minute == now.minute() {
            let passed = self.passed_by_minute.of(closed.minute);
            self.learn(Quota::Minute(Budget::measured(passed)), shared);
        }
    }

    /// Learns the quota from a probe that passed.
    pub(super) fn reopen(&mut self, closed: &Closed, now: Now, shared: &mut Shared) {
        self.was_closed = now.at.duration_since(closed.since);
        (self.opened, self.passed_since) = (Some(now.at), 1);
        // The probe counts for the pace that is learned.
        (self.tokens, self.filled) = (0.0, Some(closed.probe.unwrap_or(now.at)));
        let elapsed = self.was_closed.as_secs_f64().max(1.0);
        let is_next_minute = closed.minute != now.minute();
        let in_minute = self.passed_by_minute.of(closed.minute);
        match &mut self.quota {
            Quota::Rate(_) => {}
            Quota::Minute(budget) => {
                budget.calls = budget.calls.max(in_minute);
                if closed.late >= 3 && now.since_minute() > MAX_GUARD {
                    let rate = f64::from(budget.calls) / 60.0;
                    self.learn(Quota::Rate(Rate::measured(rate)), shared);
                } else if closed.late == 0 && is_next_minute {
                    shared.guard = FIRST_GUARD.max(shared.guard.mul_f64(0.9));
                }
            }
            Quota::Unknown if closed.probes > 0 && is_next_minute => {
                self.learn(Quota::Minute(Budget::measured(in_minute)), shared);
            }
            Quota::Unknown if closed.probes > 0 => {
                self.learn(Quota::Rate(Rate::assumed(1.0 / elapsed)), shared);
            }
            Quota::Unknown if closed.is_certain && elapsed > 2.5 => {
                let rate = f64::from(in_minute.max(1)) / 60.0;
                self.learn(Quota::Rate(Rate::assumed(rate)), shared);
            }
            Quota::Unknown => {
                let rate = self.rate_before(closed.sent).max(1.0 / elapsed);
                let is_sure =
                    !is_next_minute && !closed.sent.is_near_boundary() && !now.is_near_boundary();
                let rate = if is_sure {
                    Rate::measured(rate)
                } else {
                    Rate::assumed(rate)
                };
                self.learn(Quota::Rate(rate), shared);
            }
        }
    }

    /// The calls that passed in the second before this one was sent.
    fn rate_before(&self, sent: Now) -> f64 {
        let second = sent.second();
        let part = 1.0 - sent.since_second().as_secs_f64();
        f64::from(self.passed_by_second.of(second))
            + part * f64::from(self.passed_by_second.of(second - 1))
    }

    fn learn(&mut self, quota: Quota, shared: &mut Shared) {
        tracing::info!(
            cloud.action = self.name,
            quota = %quota,
            "learned a quota of the cloud"
        );
        if !self.is_account {
            shared.prior = Some(quota.clone());
        }
        self.quota = quota;
    }
}
