//! One waiter: what it waits for, which polls it has shared, and when it needs another.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::learned::Learned;
use super::schedule::Wait;
use super::{Observation, PollSettings};
use crate::base::Deadline;

/// A poll that has not answered for so long delays nobody; its waiters take part in another one.
const HUNG: Duration = Duration::from_secs(2);
/// A poll so shortly before the time to poll out of order takes its place.
const PROBED: Duration = Duration::from_millis(100);
/// Pause after a failed poll. It doubles with each one in a row.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// What a waiter waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollMode {
    /// The present state.
    Once,
    /// A change that may come at any time. The waiter may call the cloud after each observation, so it has few.
    Change,
    /// The end of an operation, with the number of its learned durations.
    Operation(usize),
}

#[derive(Debug)]
pub(super) struct Subscriber<K, V> {
    pub(super) key: K,
    pub(super) mode: PollMode,
    pub(super) joined: Instant,
    pub(super) deadline: Deadline,
    /// When to poll out of order, to learn of shorter durations.
    pub(super) probe: Option<Instant>,
    observations: mpsc::UnboundedSender<(Instant, Observation<V>)>,
    /// The newest poll and the newest one that was answered: number and time of sending.
    polled: (u64, Instant),
    answered: (u64, Instant),
    /// When to give up on the newest poll, or to repeat it after its failure.
    retry: Instant,
    failures: u32,
    /// Observations that the waiter has not decided about yet: it may need no other poll.
    undecided: usize,
}

impl<K, V> Subscriber<K, V> {
    pub(super) fn new(
        key: K,
        mode: PollMode,
        deadline: Deadline,
        probe: Option<Duration>,
        observations: mpsc::UnboundedSender<(Instant, Observation<V>)>,
    ) -> Self {
        let joined = Instant::now();
        Self {
            key,
            mode,
            joined,
            deadline,
            probe: probe.map(|age| joined + age),
            observations,
            polled: (0, joined),
            answered: (0, joined),
            retry: joined,
            failures: 0,
            undecided: 0,
        }
    }

    /// The end of the wait for the newest poll, unless it was answered or is given up.
    fn pending(&self, now: Instant) -> Option<Instant> {
        (self.polled.0 != self.answered.0 && now < self.retry).then_some(self.retry)
    }

    /// From one observation to the next while waiting for a change: the longer it takes, the longer it is.
    fn interval(&self, settings: &PollSettings) -> Duration {
        let age = self.answered.1 - self.joined;
        (age / 3).clamp(settings.shortest, settings.longest)
    }

    /// When a poll is due for this waiter, whatever others need.
    pub(super) fn due(&self, now: Instant, settings: &PollSettings) -> Option<Instant> {
        if self.undecided > 0 {
            return None;
        }
        if let Some(retry) = self.pending(now) {
            return Some(retry);
        }
        match self.mode {
            PollMode::Once => Some(self.joined + settings.linger),
            PollMode::Change => Some(self.answered.1 + self.interval(settings)),
            PollMode::Operation(_) => self.probe,
        }
    }

    /// Whether it takes part in a poll of now. A waiter that may act on an observation does not have them all.
    pub(super) fn shares(&self, now: Instant, settings: &PollSettings) -> bool {
        match self.mode {
            _ if self.undecided > 0 => false,
            PollMode::Once | PollMode::Operation(_) => true,
            PollMode::Change => {
                self.pending(now).is_none()
                    && now >= self.answered.1 + settings.shortest.max(self.interval(settings) / 2)
            }
        }
    }

    /// What the schedule has to know of a waiter for an operation.
    pub(super) fn wait<'a>(&self, now: Instant, learned: &'a Learned) -> Option<Wait<'a>> {
        let PollMode::Operation(number) = self.mode else {
            return None;
        };
        if self.undecided > 0 {
            return None;
        }
        let age = |at: Instant| (at - self.joined).as_secs_f64();
        let answered = age(self.answered.1);
        let polled = self.pending(now).map_or(answered, |_| age(self.polled.1));
        Some(Wait::new(learned.get(number), age(now), polled, answered))
    }

    /// How much it needs a poll of now, where not all can have one.
    pub(super) fn urgency(&self, now: Instant, settings: &PollSettings, learned: &Learned) -> f64 {
        if self.due(now, settings).is_some_and(|due| due <= now) {
            return 2.0;
        }
        self.wait(now, learned).map_or(0.0, |wait| wait.shown(0.0))
    }

    /// A poll is sent.
    pub(super) fn poll(&mut self, number: u64, now: Instant) {
        if self.polled.0 != self.answered.0 && now >= self.retry {
            self.failures += 1;
        }
        self.polled = (number, now);
        self.retry = now + HUNG * 2_u32.pow(self.failures.min(3));
        self.probe = self.probe.filter(|probe| *probe > now + PROBED);
    }

    /// A poll was answered. Says whether the answer is newer than the one before.
    pub(super) fn answer(&mut self, number: u64, sent: Instant) -> bool {
        let is_newer = number > self.answered.0;
        if is_newer {
            self.answered = (number, sent);
            self.failures = 0;
        }
        is_newer
    }

    /// A poll has failed. Says whether there has been no newer answer.
    pub(super) fn fail(&mut self, number: u64, wait: Option<Duration>) -> bool {
        if self.polled.0 == number {
            let pause = (PAUSE * 2_u32.pow(self.failures.min(5))).min(LONGEST_PAUSE);
            self.retry = Instant::now() + wait.unwrap_or_default().max(pause);
        }
        number > self.answered.0
    }

    /// Hands an observation to the waiter.
    pub(super) fn notify(&mut self, sent: Instant, observation: Observation<V>) {
        // A waiter that has just left does not need it.
        if self.observations.send((sent, observation)).is_ok() {
            self.undecided += 1;
        }
    }

    /// The waiter has taken in an observation, and waits on.
    pub(super) fn resume(&mut self) {
        self.undecided = self.undecided.saturating_sub(1);
    }
}
