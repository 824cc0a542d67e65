//! One waiter: what it waits for, which polls it has shared, and when it needs another.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Observation;
use super::operation::{Learned, OperationKind};
use super::schedule::Wait;
use super::source::Interval;
use crate::base::Deadline;
use crate::cloud::Error;

/// A poll that has not answered for so long delays nobody; its waiters take part in another one.
const HUNG: Duration = Duration::from_secs(2);
/// A poll so shortly before the time to poll out of order takes its place.
const PROBED: Duration = Duration::from_millis(100);
/// Pause after a failed poll. It doubles with each one in a row.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// What a waiter waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mode {
    /// The present state, and then a change.
    Look,
    /// A change that may come at any time. The waiter may call the cloud after each observation, so it has few.
    Change,
    /// The end of an operation.
    Operation(OperationKind),
}

pub(super) type Outcome<V> = Result<Observation<V>, Arc<Error>>;

/// What a poll sent at that time shows.
pub(super) type Observations<V> = mpsc::Sender<(Instant, Outcome<V>)>;

pub(super) struct Waiter<V> {
    pub(super) mode: Mode,
    joined: Instant,
    /// When the operation began, as far as that is known.
    began: Instant,
    pub(super) deadline: Deadline,
    /// When to poll out of order, to learn of shorter durations.
    probe: Option<Instant>,
    observations: Observations<V>,
    /// When the newest poll was sent, and the newest one that was answered.
    polled: Option<Instant>,
    answered: Option<Instant>,
    interval: Interval,
    /// When to give up on the newest poll, or to repeat it after its failure.
    retry: Instant,
    failures: u32,
}

impl<V> Waiter<V> {
    pub(super) fn new(
        mode: Mode,
        joined: Instant,
        began: Instant,
        deadline: Deadline,
        observations: Observations<V>,
        interval: Interval,
    ) -> Self {
        Self {
            mode,
            joined,
            began,
            deadline,
            probe: None,
            observations,
            interval,
            polled: None,
            answered: None,
            retry: joined,
            failures: 0,
        }
    }

    /// At this age it is polled for out of order.
    pub(super) fn probe_at(&mut self, age: Option<f64>) {
        self.probe = age.map(|age| self.began + Duration::from_secs_f64(age));
    }

    /// Whether it has not decided about an observation yet: it may need no other poll.
    pub(super) fn is_undecided(&self) -> bool {
        self.observations.capacity() < self.observations.max_capacity()
    }

    /// When the newest poll was sent, unless it was answered.
    fn unanswered(&self) -> Option<Instant> {
        self.polled.filter(|polled| Some(*polled) > self.answered)
    }

    /// The same, unless it is given up.
    fn pending(&self, now: Instant) -> Option<Instant> {
        self.unanswered().filter(|_| now < self.retry)
    }

    /// From one observation to the next while waiting for a change: the longer it takes, the longer it is.
    fn interval(&self) -> Duration {
        let age = self.answered.unwrap_or(self.joined) - self.joined;
        (age / 3).clamp(self.interval.0, self.interval.1)
    }

    /// When a poll is due for this waiter, whatever others need. A look waits for `linger`.
    pub(super) fn due(&self, now: Instant, linger: Duration) -> Option<Instant> {
        if self.is_undecided() {
            return None;
        }
        if self.pending(now).is_some() {
            return Some(self.retry);
        }
        match (&self.mode, self.answered) {
            (Mode::Operation(_), _) => self.probe,
            (Mode::Look, None) => Some(self.joined + linger),
            (_, answered) => Some(answered.unwrap_or(self.joined) + self.interval()),
        }
    }

    /// Whether it takes part in all polls. A waiter that may act on an observation does not have them all.
    fn takes_all(&self) -> bool {
        match self.mode {
            Mode::Operation(_) => true,
            Mode::Look => self.answered.is_none(),
            Mode::Change => false,
        }
    }

    /// Whether its id belongs in a poll of now.
    pub(super) fn needs(&self, now: Instant) -> bool {
        let is_waiting = self.is_undecided() || self.pending(now).is_some() && !self.takes_all();
        !is_waiting && self.shares(now)
    }

    /// Whether what a poll of that time shows is for this waiter.
    pub(super) fn shares(&self, sent: Instant) -> bool {
        let last = self.answered.unwrap_or(self.joined);
        let gap = self.interval.0.max(self.interval() / 2);
        let is_late = self.takes_all() || sent >= last + gap;
        is_late && sent >= self.joined && Some(sent) > self.answered
    }

    /// What the schedule has to know of a waiter for an operation.
    pub(super) fn wait<'a>(&self, now: Instant, learned: &'a Learned) -> Option<Wait<'a>> {
        let Mode::Operation(kind) = &self.mode else {
            return None;
        };
        if self.is_undecided() {
            return None;
        }
        let age = |at: Instant| (at - self.began).as_secs_f64();
        let answered = self.answered.map_or(0.0, age);
        let polled = self.pending(now).map_or(answered, age);
        Some(Wait::new(learned.get(kind)?, age(now), polled, answered))
    }

    /// A poll is sent.
    pub(super) fn poll(&mut self, now: Instant) {
        if self.unanswered().is_some() && now >= self.retry {
            self.failures += 1;
        }
        self.polled = Some(now);
        self.retry = now + HUNG * 2_u32.pow(self.failures.min(3));
        self.probe = self.probe.filter(|probe| *probe > now + PROBED);
    }

    /// Hands over what a poll of that time has shown.
    pub(super) fn observe(&mut self, sent: Instant, outcome: Outcome<V>) {
        match &outcome {
            Ok(_) => {
                self.answered = Some(sent);
                self.failures = 0;
            }
            Err(error) if self.polled == Some(sent) => {
                let pause = (PAUSE * 2_u32.pow(self.failures.min(5))).min(LONGEST_PAUSE);
                self.retry = Instant::now() + error.wait().unwrap_or_default().max(pause);
            }
            Err(_) => {}
        }
        // A waiter that has just left does not need it.
        let _ = self.observations.try_send((sent, outcome));
    }
}
