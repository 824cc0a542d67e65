//! How throttling errors close a limit, and what is learned until it opens.

use std::time::Duration;

use super::super::CallOutcome;
use super::super::quota::{Budget, Quota, Rate};
use super::super::tally::Now;
use super::closed::{Closed, FIRST_GUARD};
use super::{IN_FLIGHT, Limit, Shared, Ticket};

/// Refused probes for so long mean that the limit stays closed until the minute ends.
const CLOSED_FOR_THE_MINUTE: Duration = Duration::from_millis(6500);

/// How far the cloud's clock may differ.
const MAX_GUARD: Duration = Duration::from_secs(4);

impl Limit {
    /// Records how a call ended.
    pub(in super::super) fn settle(
        &mut self,
        ticket: Ticket,
        outcome: CallOutcome,
        now: Now,
        shared: &mut Shared,
    ) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let is_counted = match outcome {
            CallOutcome::Passed | CallOutcome::Concurrent | CallOutcome::Unknown => true,
            CallOutcome::Throttled { .. } | CallOutcome::Unsent => false,
        };
        if !is_counted {
            self.by_minute.remove(ticket.sent.minute());
            self.by_second.remove(ticket.sent.second());
        }
        match outcome {
            CallOutcome::Passed => return self.passed(ticket, now, shared),
            CallOutcome::Throttled { account, wait } if account == self.is_account() => {
                return self.refused(ticket, now, wait, shared);
            }
            CallOutcome::Concurrent if !self.is_account() => {
                self.max_in_flight = (self.in_flight / 2).max(IN_FLIGHT.2);
            }
            CallOutcome::Throttled { .. } | CallOutcome::Unsent => {
                self.tokens += 1.0;
                match &mut self.quota {
                    Quota::Rate(rate) => rate.unsent(),
                    Quota::Minute(budget) if ticket.explores => budget.unexplore(),
                    Quota::Minute(_) | Quota::Unknown => {}
                }
            }
            CallOutcome::Concurrent | CallOutcome::Unknown => {}
        }
        if let Some(closed) = self.closed.as_mut().filter(|_| ticket.is_probe) {
            closed.probe = None;
        }
    }

    fn passed(&mut self, ticket: Ticket, now: Now, shared: &mut Shared) {
        self.max_in_flight = (self.max_in_flight + 1).min(IN_FLIGHT.1);
        if matches!(self.quota, Quota::Unknown) {
            self.tokens += 1.0;
        }
        self.passed = self.passed.saturating_add(1);
        self.passed_since = self.passed_since.saturating_add(1);
        if !self.is_account() {
            shared.passed = shared.passed.saturating_add(1);
        }
        let reopens = ticket.is_probe && ticket.epoch == self.epoch;
        if let Some(closed) = self.closed.take_if(|_| reopens) {
            self.reopen(&closed, now, shared);
        }
    }

    fn refused(&mut self, ticket: Ticket, now: Now, wait: Option<Duration>, shared: &mut Shared) {
        // Calls that were in flight when the limit closed say nothing new.
        if ticket.epoch != self.epoch {
            return;
        }
        self.epoch += 1;
        if !self.is_account() {
            (shared.throttled, shared.passed) = (true, 0);
        }
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
        let stated = wait.map(|wait| now.at + wait + Duration::from_millis(20));
        let probe = now.at + closed.pause;
        closed.is_certain = stated.is_some() || is_minute && closed.late == 0;
        closed.is_guarded = stated.is_none() && (closed.is_certain || now.next_minute() < probe);
        closed.until = match stated {
            Some(stated) => stated,
            None if closed.is_guarded => now.next_minute(),
            None => probe,
        };
        self.closed = Some(closed);
    }

    /// Closes the limit after the refusal of this call.
    fn close(&mut self, ticket: Ticket, now: Now) -> Closed {
        let mut pause = Duration::from_secs(1);
        match &mut self.quota {
            Quota::Rate(rate) => {
                let open = now.at.duration_since(self.opened.unwrap_or(now.at));
                rate.refused(self.passed_since, open, self.was_closed);
                pause = Duration::from_secs_f64((2.0 / rate.pace).clamp(0.2, 1.0));
                tracing::debug!(
                    cloud.action = self.name,
                    pace = rate.pace,
                    "throttled, pace lowered"
                );
            }
            Quota::Minute(budget) => {
                let used = self.by_minute.of(ticket.sent.minute());
                // Throttled far below the budget of another API: that one does not apply.
                if budget.exploring && used < budget.calls / 5 * 4 {
                    self.quota = Quota::Unknown;
                } else {
                    budget.refused(used);
                }
            }
            Quota::Unknown => {
                tracing::warn!(cloud.action = self.name, "throttled, learning the quota");
            }
        }
        Closed::by(ticket.sent, now, pause)
    }

    /// Concludes from refusals that the limit stays closed until the minute ends.
    fn conclude(&mut self, closed: &Closed, now: Now, wait: Option<Duration>, shared: &mut Shared) {
        const SLACK: Duration = Duration::from_millis(2500);
        if matches!(self.quota, Quota::Minute(_)) {
            return;
        }
        let used = self.by_minute.of(closed.minute);
        let lasted = now.at.duration_since(closed.since);
        let is_stated = wait.is_some_and(|wait| {
            let (opens, boundary) = (now.at + wait, now.next_minute());
            wait > SLACK && opens + SLACK > boundary && opens < boundary + SLACK
        });
        let is_likely = match &shared.prior {
            Some(Quota::Minute(prior)) => {
                let is_alike = used.abs_diff(prior.calls) <= prior.calls / 5;
                is_alike || lasted >= Duration::from_millis(900)
            }
            _ => lasted >= CLOSED_FOR_THE_MINUTE,
        };
        if is_stated || is_likely && closed.minute == now.minute() {
            self.learn(Quota::Minute(Budget::new(used, true)), shared);
        }
    }

    /// Opens the limit after a probe that passed.
    fn reopen(&mut self, closed: &Closed, now: Now, shared: &mut Shared) {
        self.was_closed = now.at.duration_since(closed.since);
        (self.opened, self.passed_since) = (Some(now.at), 1);
        // The probe counts for the pace that is learned.
        (self.tokens, self.filled) = (0.0, Some(closed.probe.unwrap_or(now.at)));
        let elapsed = self.was_closed.as_secs_f64().max(1.0);
        let is_next_minute = closed.minute != now.minute();
        let in_minute = self.by_minute.of(closed.minute);
        let learned = match &mut self.quota {
            Quota::Rate(_) => return,
            Quota::Minute(budget) => {
                budget.calls = budget.calls.max(in_minute);
                if closed.late < 3 || now.since_minute() < MAX_GUARD {
                    if closed.late == 0 {
                        shared.guard = FIRST_GUARD.max(shared.guard.mul_f64(0.9));
                    }
                    return;
                }
                // Not a matter of the clock's minutes: a sliding window or a bucket.
                Quota::Rate(Rate::new(f64::from(budget.calls) / 60.0, true))
            }
            Quota::Unknown if closed.probes > 0 && is_next_minute => {
                Quota::Minute(Budget::new(in_minute, true))
            }
            Quota::Unknown if closed.probes > 0 => Quota::Rate(Rate::new(1.0 / elapsed, false)),
            Quota::Unknown if closed.is_certain && elapsed > 2.5 => {
                Quota::Rate(Rate::new(f64::from(in_minute.max(1)) / 60.0, false))
            }
            Quota::Unknown => {
                let is_near = closed.sent.is_near_boundary() || now.is_near_boundary();
                let rate = closed.rate.unwrap_or_default().max(1.0 / elapsed);
                Quota::Rate(Rate::new(rate, !is_next_minute && !is_near))
            }
        };
        self.learn(learned, shared);
    }

    fn learn(&mut self, quota: Quota, shared: &mut Shared) {
        tracing::info!(cloud.action = self.name, %quota, "learned a quota");
        if !self.is_account() {
            shared.prior = Some(quota.clone());
        }
        self.quota = quota;
    }
}
