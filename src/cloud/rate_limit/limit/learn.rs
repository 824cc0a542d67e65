//! Learns from responses: throttling errors close a limit, and its quota is estimated when it opens.

use std::time::Duration;

use super::super::CallOutcome;
use super::super::quota::{Budget, Quota, Rate};
use super::super::time::Now;
use super::{Closed, GUARD, IN_FLIGHT, Limit, Shared};

/// After throttled probes for so long, the limit stays closed until the minute ends.
const CLOSED_FOR_THE_MINUTE: Duration = Duration::from_millis(6500);

/// The tolerance between a stated wait and the end of the minute; longer than any wait of a quota per second.
const SLACK: Duration = Duration::from_millis(2500);

/// The maximum difference of the cloud's clock.
const MAX_SKEW: Duration = Duration::from_secs(4);

impl Limit {
    /// Records the outcome of a call.
    pub(in super::super) fn record(
        &mut self,
        sent: Now,
        outcome: CallOutcome,
        now: Now,
        shared: &mut Shared,
    ) {
        // Calls that were in flight when the limit closed are not new evidence.
        let is_new = Some(sent.at) > self.closed_at;
        self.in_flight = self.in_flight.saturating_sub(1);
        match outcome {
            CallOutcome::Passed => return self.passed(is_new, now, shared),
            CallOutcome::Throttled { wait, error, .. } => {
                self.sent.remove(sent);
                self.last_error = Some(error);
                if is_new {
                    self.throttled(sent, now, wait, shared);
                }
            }
            CallOutcome::Concurrent => self.max_in_flight = (self.in_flight / 2).max(IN_FLIGHT.1),
            CallOutcome::Unknown => {}
            CallOutcome::Unsent => {
                self.sent.remove(sent);
                self.debt -= 1.0;
                if let Some(pace) = &mut self.configured {
                    pace.give_back();
                }
            }
        }
        if let Some(closed) = self.closed.as_mut().filter(|_| is_new) {
            closed.probe = None;
        }
    }

    fn passed(&mut self, is_new: bool, now: Now, shared: &mut Shared) {
        self.max_in_flight = (self.max_in_flight + 1).min(IN_FLIGHT.0);
        shared.passed = shared.passed.saturating_add(1);
        match &mut self.quota {
            Quota::Unknown => self.debt -= 1.0,
            Quota::Rate(rate) if is_new => rate.passed(now.at),
            Quota::Rate(_) | Quota::Minute(_) => {}
        }
        if let Some(closed) = self.closed.take_if(|_| is_new) {
            self.learn(self.quota_of_opened(&closed, now), shared);
            // The probe counts for the pace that is learned.
            self.debt = self.pace(shared).1;
            if closed.late == 0 {
                shared.skew = shared.skew.mul_f64(0.9);
            }
        }
    }

    fn throttled(&mut self, sent: Now, now: Now, wait: Option<Duration>, shared: &mut Shared) {
        (shared.throttled, shared.passed) = (true, 0);
        self.closed_at = Some(now.at);
        let mut closed = match self.closed.take() {
            Some(mut closed) => {
                closed.probes += 1;
                closed.late += u32::from(now.minute() != closed.sent.minute());
                closed.probe = None;
                closed
            }
            None => self.close(sent, now),
        };
        self.learn(self.quota_of_closed(&closed, now, wait), shared);
        let pause = self.pause(&closed);
        let is_minute = matches!(self.quota, Quota::Minute(_));
        if is_minute && closed.late > 0 {
            let skew = now.since_minute() + pause;
            shared.skew = shared.skew.max(skew.min(MAX_SKEW));
        }
        let (boundary, probe) = (now.next_minute(), now.at + pause);
        closed.until = match wait {
            Some(wait) => now.at + wait + Duration::from_millis(20),
            None if is_minute && closed.late == 0 || boundary < probe => boundary + shared.guard(),
            None => probe,
        };
        self.closed = Some(closed);
    }

    /// The pause before the next probe: doubled after each throttled one, and reset once the minute has ended.
    fn pause(&self, closed: &Closed) -> Duration {
        let (first, throttled) = match &self.quota {
            _ if closed.late > 0 => (GUARD, closed.late - 1),
            Quota::Rate(_) => (GUARD, closed.probes),
            Quota::Unknown | Quota::Minute(_) => (Duration::from_secs(1), closed.probes),
        };
        first * 2_u32.saturating_pow(throttled.min(12))
    }

    /// Closes the limit after the first throttling error.
    fn close(&mut self, sent: Now, now: Now) -> Closed {
        let used = self.sent.in_minute(sent.minute());
        match &mut self.quota {
            Quota::Rate(rate) => rate.throttled(),
            Quota::Minute(budget) => self.quota = budget.throttled(used, now),
            Quota::Unknown => {}
        }
        tracing::debug!(cloud.action = self.name, quota = %self.quota, "throttled");
        Closed::new(sent, now.at)
    }

    /// The quota of a limit that throttled another call: one per minute if it stays closed until the minute ends.
    fn quota_of_closed(&self, closed: &Closed, now: Now, wait: Option<Duration>) -> Option<Quota> {
        let is_stated = wait.is_some_and(|wait| {
            let (opens, boundary) = (now.at + wait, now.next_minute());
            wait > SLACK && opens + SLACK > boundary && opens < boundary + SLACK
        });
        let is_likely = now.at.duration_since(closed.sent.at) >= CLOSED_FOR_THE_MINUTE
            && closed.sent.minute() == now.minute();
        let is_new = !matches!(self.quota, Quota::Minute(_));
        (is_new && (is_stated || is_likely)).then(|| self.minute_of(closed, now))
    }

    /// The quota of a limit that has opened, if it was not known or was wrong.
    fn quota_of_opened(&self, closed: &Closed, now: Now) -> Option<Quota> {
        // The limit may have opened long before this call.
        let opened = now.at.min(closed.until);
        let elapsed = opened.saturating_duration_since(closed.sent.at);
        let least = 1.0 / elapsed.as_secs_f64().max(1.0);
        let is_same_minute = closed.sent.minute() == now.minute();
        match &self.quota {
            // Not aligned to minutes: a sliding window or a token bucket.
            Quota::Minute(budget) if closed.late >= 3 && now.since_minute() >= MAX_SKEW => {
                Some(Quota::Rate(Rate::new(f64::from(budget.calls) / 60.0, true)))
            }
            Quota::Rate(_) | Quota::Minute(_) => None,
            Quota::Unknown if closed.probes == 0 => {
                // The quota admits at least the calls that passed in this minute.
                let passed = f64::from(self.sent.in_minute(closed.sent.minute())) / 60.0;
                let rate = closed.rate.unwrap_or_default().max(passed);
                let is_near = closed.sent.is_near_boundary() || now.is_near_boundary();
                let is_measured = rate > least && is_same_minute && !is_near;
                Some(Quota::Rate(Rate::new(rate.max(least), is_measured)))
            }
            Quota::Unknown if is_same_minute => Some(Quota::Rate(Rate::new(least, false))),
            Quota::Unknown => Some(self.minute_of(closed, now)),
        }
    }

    fn minute_of(&self, closed: &Closed, now: Now) -> Quota {
        let used = self.sent.in_minute(closed.sent.minute());
        Quota::Minute(Budget::new(used, true, now))
    }

    fn learn(&mut self, quota: Option<Quota>, shared: &mut Shared) {
        if let Some(quota) = quota {
            tracing::info!(cloud.action = self.name, %quota, "learned a quota");
            shared.prior = Some(quota.clone());
            self.quota = quota;
        }
    }
}
