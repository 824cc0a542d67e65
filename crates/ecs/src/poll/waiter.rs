//! One waiter: its mode, the polls that it has shared, and when it needs the next one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Observation;
use super::learned::Learned;
use super::operation::OperationKind;
use super::schedule::Wait;
use super::source::Interval;
use crate::Error;
use crate::base::Deadline;

/// A poll without a response for so long is considered hung; its waiters join another one.
const HUNG: Duration = Duration::from_secs(2);
/// A poll so shortly before a probe replaces it.
const PROBE_TOLERANCE: Duration = Duration::from_millis(100);
/// Backoff after a failed poll. It doubles with each consecutive failure.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(8);

/// The event that a waiter waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PollMode {
    /// The current state, by a describe call that is shared with concurrent callers, and then a change.
    Current,
    /// A change that may come at any time. The waiter may call the cloud after each observation, so it has few.
    Change,
    /// The end of an operation that the cloud has accepted: the polls are sent when such operations are likely to end.
    Operation(OperationKind),
}

pub(super) type Outcome<V> = Result<Observation<V>, Arc<Error>>;

/// The time at which a poll was sent, and its outcome.
pub(super) type Observations<V> = mpsc::Sender<(Instant, Outcome<V>)>;

pub(super) struct Waiter<V> {
    pub(super) mode: PollMode,
    joined: Instant,
    /// When the operation began, as far as that is known.
    began: Instant,
    pub(super) deadline: Deadline,
    /// When to poll out of schedule, to detect shorter durations.
    probe: Option<Instant>,
    observations: Observations<V>,
    /// When the newest poll and the newest poll with a response were sent.
    polled: Option<Instant>,
    responded: Option<Instant>,
    interval: Interval,
    /// When to give up on the newest poll, or to repeat it after its failure.
    retry: Instant,
    failures: u32,
}

impl<V> Waiter<V> {
    pub(super) fn new(
        mode: PollMode,
        began: Instant,
        deadline: Deadline,
        observations: Observations<V>,
        interval: Interval,
    ) -> Self {
        let joined = Instant::now();
        Self {
            mode,
            joined,
            began,
            deadline,
            probe: None,
            observations,
            interval,
            polled: None,
            responded: None,
            retry: joined,
            failures: 0,
        }
    }

    /// Sets the age at which the operation is polled for out of schedule.
    pub(super) fn set_probe(&mut self, age: Option<f64>) {
        self.probe = age.map(|age| self.began + Duration::from_secs_f64(age));
    }

    /// Whether an observation is not processed yet: the waiter may need no further poll.
    pub(super) fn is_undecided(&self) -> bool {
        self.observations.capacity() < self.observations.max_capacity()
    }

    /// When the newest poll was sent, unless it has a response.
    fn pending_poll(&self) -> Option<Instant> {
        self.polled.filter(|polled| Some(*polled) > self.responded)
    }

    /// As [`Self::pending_poll`], unless the poll is considered hung.
    fn pending(&self, now: Instant) -> Option<Instant> {
        self.pending_poll().filter(|_| now < self.retry)
    }

    /// The time between two observations while waiting for a change. It grows with the time waited.
    fn interval(&self) -> Duration {
        let age = self.responded.unwrap_or(self.joined) - self.joined;
        (age / 3).clamp(self.interval.0, self.interval.1)
    }

    /// When a poll is due for this waiter alone. A waiter for the current state waits for `linger`.
    pub(super) fn due(&self, now: Instant, linger: Duration) -> Option<Instant> {
        if self.is_undecided() {
            return None;
        }
        if self.pending(now).is_some() {
            return Some(self.retry);
        }
        match (&self.mode, self.responded) {
            (PollMode::Operation(_), _) => self.probe,
            (PollMode::Current, None) => Some(self.joined + linger),
            (_, responded) => Some(responded.unwrap_or(self.joined) + self.interval()),
        }
    }

    /// Whether it shares all polls. A waiter that may act on an observation does not.
    fn shares_all(&self) -> bool {
        match self.mode {
            PollMode::Operation(_) => true,
            PollMode::Current => self.responded.is_none(),
            PollMode::Change => false,
        }
    }

    /// Whether its id belongs in a poll sent now.
    pub(super) fn needs(&self, now: Instant) -> bool {
        let is_waiting = self.is_undecided() || self.pending(now).is_some() && !self.shares_all();
        !is_waiting && self.shares(now)
    }

    /// Whether the outcome of a poll sent at that time is for this waiter.
    pub(super) fn shares(&self, sent: Instant) -> bool {
        let last = self.responded.unwrap_or(self.joined);
        let gap = self.interval.0.max(self.interval() / 2);
        let is_late = self.shares_all() || sent >= last + gap;
        is_late && sent >= self.joined && Some(sent) > self.responded
    }

    /// The input of the schedule, for a waiter for an operation.
    pub(super) fn wait<'a>(&self, now: Instant, learned: &'a Learned) -> Option<Wait<'a>> {
        let PollMode::Operation(kind) = &self.mode else {
            return None;
        };
        if self.is_undecided() {
            return None;
        }
        let age = |at: Instant| (at - self.began).as_secs_f64();
        let responded = self.responded.map_or(0.0, age);
        let polled = self.pending(now).map_or(responded, age);
        Some(Wait::new(learned.get(kind)?, age(now), polled, responded))
    }

    /// Records that a poll is sent.
    pub(super) fn poll(&mut self, now: Instant) {
        if self.pending_poll().is_some() && now >= self.retry {
            self.failures += 1;
        }
        self.polled = Some(now);
        self.retry = now + HUNG * 2_u32.pow(self.failures.min(3));
        self.probe = self.probe.filter(|probe| *probe > now + PROBE_TOLERANCE);
    }

    /// Delivers the outcome of a poll sent at that time.
    pub(super) fn deliver(&mut self, sent: Instant, outcome: Outcome<V>) {
        match &outcome {
            Ok(_) => {
                self.responded = Some(sent);
                self.failures = 0;
            }
            Err(error) if self.polled == Some(sent) => {
                let pause = (FIRST_BACKOFF * 2_u32.pow(self.failures.min(5))).min(MAX_BACKOFF);
                self.retry = Instant::now() + error.retry_after().unwrap_or_default().max(pause);
            }
            Err(_) => {}
        }
        // A waiter that has just left does not need the outcome.
        let _ = self.observations.try_send((sent, outcome));
    }
}
