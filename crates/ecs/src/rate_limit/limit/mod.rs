//! One limit of the cloud: paces calls, closes on a throttling error, and probes until it opens. Does not wait.

use std::time::Duration;

use tokio::time::Instant;

mod adapt;

use super::pace::Pace;
use super::{CallOutcome, Priority};
use adapt::{Learned, Sent};

/// Calls that are sent in one burst while a limit is unknown.
const BURST: f64 = 16.0;

/// Calls in flight before the first response, and after a throttling error: all of them may be throttled. More are sent
/// one by one, because a response may also be slow.
const UNPROVEN: u32 = 20;
const UNPROVEN_PAUSE: Duration = Duration::from_millis(100);

/// Maximum of calls in flight, and its lower bound after errors about concurrency.
const IN_FLIGHT: (u32, u32) = (256, 4);

/// How long other calls wait for the response to a probe.
const LEASE: Duration = Duration::from_secs(2);

/// The pauses before the first probe of a limit whose quota is unknown, and of one whose rate is slightly too high.
/// Each later one is as long as the limit has been closed.
const PAUSE: Duration = Duration::from_secs(1);
const SHORT_PAUSE: Duration = Duration::from_millis(300);

/// A probe is sent so long after each minute of the clock has begun, and the pauses grow again from there: quotas per
/// minute open then. Without it, 400 volumes under 200 calls per minute need 104 s instead of 82 s.
const MINUTE_AND_GUARD: Duration = Duration::from_millis(60_300);

/// The usual window of quotas with long closures, and the time until the probe has passed.
const MINUTE: Duration = Duration::from_secs(62);

/// A learned rate is forgotten after so long without a call: it may be due to the calls of others, or has changed.
const MEMORY: Duration = Duration::from_secs(120);

/// State that the limits of all APIs share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Calls that passed since the last throttling error.
    passed: u32,
    /// A limit is closed, and its quota is still unknown.
    throttled: bool,
    /// The most recently learned rate of an API.
    rate: Option<f64>,
    /// When an API opened last: the windows of others may have ended too.
    opened: Option<Instant>,
}

/// The state of the limit of an API, or of the account, for metrics and operators.
#[derive(Debug, Clone, PartialEq)]
pub struct LimitReport {
    /// The action, or `account`.
    pub action: &'static str,
    pub waiting: usize,
    pub in_flight: u32,
    /// The most calls per second that the configuration permits.
    pub configured: Option<f64>,
    /// Calls per second, once a call was throttled.
    pub learned: Option<f64>,
    /// How long the API stays closed after a throttling error.
    pub closed_for: Option<Duration>,
}

/// When a call may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Earliest {
    pub(super) at: Instant,
    /// Whether responses to other calls cannot make it earlier.
    pub(super) is_certain: bool,
}

/// The limit of an API or of the account.
#[derive(Debug)]
pub(super) struct Limit {
    /// The action, or `account`.
    pub(super) name: &'static str,
    /// The rate that an operator permits.
    configured: Option<Pace>,
    /// The pace while the quota is unknown.
    free: Pace,
    learned: Option<Learned>,
    closed: Option<Closed>,
    /// When the limit closed last. Calls sent before are not evidence about the time after.
    closed_at: Option<Instant>,
    last: Option<Instant>,
    in_flight: u32,
    max_in_flight: u32,
    sent: Sent,
    pub(super) last_error: Option<String>,
}

/// A limit that has throttled a call.
#[derive(Debug)]
struct Closed {
    since: Instant,
    /// When the newest throttled call was sent.
    failed: Instant,
    /// When a probe may be sent, and whether the cloud has stated that time.
    until: Instant,
    is_stated: bool,
    /// When the probe in flight was sent.
    probe: Option<Instant>,
}

impl Limit {
    pub(super) fn new(name: &'static str, configured: Option<f64>) -> Self {
        Self {
            name,
            configured: configured.map(Pace::even),
            free: Pace::bursts(0.0, BURST),
            learned: None,
            closed: None,
            closed_at: None,
            last: None,
            in_flight: 0,
            max_in_flight: IN_FLIGHT.0,
            sent: Sent::default(),
            last_error: None,
        }
    }

    /// Whether a rate is configured, or a throttling error, or one of another limit, has shown that there is a quota.
    pub(super) fn is_limited(&self) -> bool {
        self.configured.is_some() || self.closed.is_some() || self.learned.is_some()
    }

    pub(super) fn report(&self, waiting: usize, now: Instant) -> LimitReport {
        let closed = self.closed.as_ref();
        LimitReport {
            action: self.name,
            waiting,
            in_flight: self.in_flight,
            configured: self.configured_rate(),
            learned: self.learned.as_ref().map(|learned| learned.pace.rate),
            closed_for: closed.map(|closed| closed.until.saturating_duration_since(now)),
        }
    }

    /// The time between two calls at the known rates.
    pub(super) fn spacing(&self) -> Duration {
        let learned = self.learned.as_ref().map(|learned| learned.pace.rate);
        let rate = self.configured_rate().into_iter().chain(learned).reduce(f64::min);
        rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(1.0 / rate))
    }

    /// Updates the limit for the calls of other limits. Precedes [`Limit::earliest`].
    pub(super) fn update(&mut self, now: Instant, shared: &Shared) {
        if let Some(closed) = &mut self.closed
            && let Some(opened) = shared.opened.filter(|opened| *opened > closed.failed)
            && !closed.is_stated
        {
            closed.until = closed.until.min(opened);
        }
        if self.closed.is_none() && self.last.is_some_and(|last| now - last > MEMORY) {
            self.learned = None;
        }
        // Until it is throttled itself, an API is assumed to have the quota of the one that was, unless it has accepted
        // a higher rate.
        if let (None, None, Some(rate)) = (&self.closed, &self.learned, shared.rate)
            && self.sent.peak() <= 1.5 * rate
        {
            self.learned = Some(Learned::assumed(rate, now));
        }
        // It probably accepts the rate that other APIs have accepted.
        let (rate, burst) = match shared.throttled {
            true => (20.0, 4.0),
            false => (60.0 + 2.5 * f64::from(shared.passed), BURST),
        };
        self.free = self.free.continued_at(Pace::bursts(rate, burst));
    }

    /// When a call may be sent; in the past or now if immediately.
    pub(super) fn earliest(&self, now: Instant, priority: Priority, shared: &Shared) -> Earliest {
        let adapted = self.adapted_earliest(now, priority, shared);
        Earliest {
            // Probes count too.
            at: adapted.at.max(self.configured_next(now)),
            ..adapted
        }
    }

    fn configured_rate(&self) -> Option<f64> {
        self.configured.map(|pace| pace.rate)
    }

    fn configured_next(&self, now: Instant) -> Instant {
        self.configured.map_or(now, |pace| pace.next(now, true))
    }

    /// The configured rate, if it delays a call, and no less than the learned one does.
    pub(super) fn delaying_rate(&self, priority: Priority, shared: &Shared) -> Option<f64> {
        let now = Instant::now();
        let configured = self.configured_next(now);
        let is_delaying = configured > now && configured >= self.adapted_earliest(now, priority, shared).at;
        self.configured_rate().filter(|_| is_delaying)
    }

    pub(super) fn configure(&mut self, rate: Option<f64>) {
        let current = self.configured;
        self.configured = rate.map(|rate| {
            let pace = Pace::even(rate);
            current.map_or(pace, |current| current.continued_at(pace))
        });
    }

    fn adapted_earliest(&self, now: Instant, priority: Priority, shared: &Shared) -> Earliest {
        let earliest = |at, is_certain| Earliest { at, is_certain };
        let mut at = now;
        let unproven = UNPROVEN.saturating_add(shared.passed);
        if self.in_flight >= self.max_in_flight.min(unproven) {
            at = self.last.unwrap_or(now) + UNPROVEN_PAUSE;
        }
        if let Some(closed) = &self.closed {
            let probe = closed.probe.filter(|sent| now < *sent + LEASE);
            return match probe {
                Some(sent) => earliest(sent + LEASE, false),
                None => earliest(at.max(closed.until), true),
            };
        }
        let learned = self.learned.as_ref().map(|learned| &learned.pace);
        let pace = learned.unwrap_or(&self.free);
        earliest(at.max(pace.next(now, !priority.is_read())), false)
    }

    /// Records that a call is sent, after [`Limit::earliest`] has allowed it.
    pub(super) fn send(&mut self, now: Instant) {
        self.paces().for_each(|pace| pace.send(now));
        if let Some(closed) = &mut self.closed {
            closed.probe = Some(now);
        }
        self.last = Some(now);
        self.in_flight += 1;
        self.sent.add(now);
    }

    /// The adapted pace, and the configured one.
    fn paces(&mut self) -> impl Iterator<Item = &mut Pace> {
        let learned = self.learned.as_mut().map(|learned| &mut learned.pace);
        let adapted = learned.unwrap_or(&mut self.free);
        std::iter::once(adapted).chain(&mut self.configured)
    }

    /// Records the outcome of a call. `since_minute` is how long the minute of the clock has lasted.
    pub(super) fn record(
        &mut self,
        sent: Instant,
        outcome: CallOutcome,
        now: Instant,
        since_minute: Duration,
        shared: &mut Shared,
    ) {
        // Calls that were in flight when the limit closed are not new evidence.
        let is_probe = |closed: &Closed| closed.probe == Some(sent);
        let is_new = Some(sent) > self.closed_at || self.closed.as_ref().is_some_and(is_probe);
        self.in_flight = self.in_flight.saturating_sub(1);
        match outcome {
            CallOutcome::Passed => return self.passed(sent, is_new, now, shared),
            CallOutcome::Throttled { wait, error, .. } => {
                self.sent.remove(sent);
                self.last_error = Some(error);
                if is_new {
                    (shared.throttled, shared.passed) = (true, 0);
                    self.close(sent, now, wait, since_minute);
                }
            }
            CallOutcome::Concurrent => self.max_in_flight = (self.in_flight / 2).max(IN_FLIGHT.1),
            CallOutcome::Unknown => {}
            CallOutcome::ThrottledElsewhere => {
                self.sent.remove(sent);
                // The configured rate counts it.
                self.paces().take(1).for_each(Pace::give_back);
            }
            CallOutcome::Unsent => {
                self.sent.remove(sent);
                self.paces().for_each(Pace::give_back);
            }
        }
        if let Some(closed) = self.closed.as_mut().filter(|_| is_new) {
            closed.probe = None;
        }
    }

    /// Closes after a throttling error, or stays closed after a throttled probe.
    fn close(&mut self, sent: Instant, now: Instant, wait: Option<Duration>, since_minute: Duration) {
        self.closed_at = Some(now);
        let since = self.closed.as_ref().map_or(now, |closed| closed.since);
        let elapsed = now - since;
        let first = match self.learned {
            Some(_) => SHORT_PAUSE,
            None => PAUSE,
        };
        let pause = match wait {
            Some(wait) => wait + Duration::from_millis(20),
            None => elapsed
                .min(since_minute.max(elapsed / 60))
                .max(first)
                .min(MINUTE_AND_GUARD.saturating_sub(since_minute)),
        };
        self.closed = Some(Closed {
            since,
            failed: sent,
            until: now + pause,
            is_stated: wait.is_some(),
            probe: None,
        });
    }

    fn passed(&mut self, sent: Instant, is_new: bool, now: Instant, shared: &mut Shared) {
        self.max_in_flight = (self.max_in_flight + 1).min(IN_FLIGHT.0);
        shared.passed = shared.passed.saturating_add(1);
        if let Some(closed) = self.closed.take_if(|_| is_new) {
            self.open(&closed, sent, now, shared);
        } else if let Some(learned) = &mut self.learned {
            learned.passed(now);
        } else {
            self.free.give_back();
        }
    }

    /// Opens after the probe sent at that time has passed.
    fn open(&mut self, closed: &Closed, probe: Instant, now: Instant, shared: &mut Shared) {
        self.sent.remove(probe);
        // Without waiting calls, the probe is sent late.
        let latest = probe.min(closed.until);
        // Unless the cloud has stated when, it has opened at an unknown time after the newest throttled call.
        let opened = match closed.is_stated {
            true => latest,
            false => closed.failed + latest.saturating_duration_since(closed.failed) / 2,
        };
        let measured = self.sent.rate_until(opened);
        let closed_for = latest.saturating_duration_since(closed.since).as_secs_f64();
        let mut learned = match (&self.learned, measured) {
            (Some(learned), _) => learned.throttled(measured.unwrap_or_default(), closed_for, now),
            // Few calls before a long closure show that others use up the quota, but not its size.
            (None, Some(rate)) if self.sent.len() < BURST && closed_for > adapt::SHORTLY => Learned::assumed(rate, now),
            (None, Some(rate)) => Learned::measured(rate, now),
            (None, None) => Learned::assumed(1.0 / closed_for.max(1.0), now),
        };
        learned.pace.send(probe);
        // As many calls as before are accepted in one burst, fewer if they can be spaced without losing much time. A
        // window is longer than the closure, by the time that its calls took.
        let window = MINUTE.max(latest.saturating_duration_since(closed.since) * 5 / 4);
        let calls = self.sent.since(latest - window);
        let burst = calls * (1.0 - adapt::SHORTLY / closed_for.max(adapt::SHORTLY));
        learned.pace.add(burst);
        if burst <= 0.0 {
            shared.rate = Some(learned.pace.rate);
        }
        (shared.throttled, shared.opened) = (false, Some(now));
        tracing::info!(
            cloud.action = self.name,
            calls_per_second = learned.pace.rate,
            "adapted to a quota"
        );
        self.learned = Some(learned);
        self.sent.restart(probe);
    }
}
