//! The task that polls while anybody waits.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{Debug, Display};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

use super::backoff::ThrottleBackoff;
use super::batch::{Found, Source};
use super::learned::Learned;
use super::schedule::{self, News};
use super::subscriber::Subscriber;
use super::witness::Witnesses;
use super::{Observation, PollSettings};
use crate::base::Deadline;
use crate::cloud::Result;

/// Waiters that come within this time are planned for together.
const DEBOUNCE: Duration = Duration::from_millis(5);
/// A response that comes later is of no use: others have been requested meanwhile.
const LONGEST_CALL: Duration = Duration::from_secs(20);
/// How many seconds of one waiter's lateness a second of the quota is worth.
const QUOTA_SHARE: f64 = 5.0;
const SECOND: Duration = Duration::from_secs(1);

pub(super) struct Shared<K, V> {
    pub(super) source: Source<K, V>,
    pub(super) settings: PollSettings,
    pub(super) state: Mutex<State<K, V>>,
    /// A waiter came or left.
    pub(super) changed: Notify,
}

pub(super) struct State<K, V> {
    pub(super) subscribers: BTreeMap<u64, Subscriber<K, V>>,
    /// Numbers waiters and polls in the order in which they began.
    pub(super) numbers: u64,
    pub(super) polling: bool,
    pub(super) learned: Learned,
    pub(super) witnesses: Witnesses<K>,
    backoff: ThrottleBackoff,
    /// The polls within the last second.
    sent: VecDeque<Instant>,
    /// The time between two polls that the quota permits.
    spacing: Duration,
    pub(super) news: News,
}

/// What to do next.
enum Plan {
    End,
    Poll(Deadline),
    DecideAt(Instant),
}

/// A poll with its ids bound.
struct Poll<K> {
    number: u64,
    sent: Instant,
    deadline: Deadline,
    keys: Vec<K>,
    subscribers: BTreeMap<K, Vec<u64>>,
}

impl<K, V> Shared<K, V> {
    pub(super) fn lock(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for State<K, V>
where
    K: Clone + Eq,
{
    fn default() -> Self {
        Self {
            subscribers: BTreeMap::new(),
            numbers: 0,
            polling: false,
            learned: Learned::default(),
            witnesses: Witnesses::default(),
            backoff: ThrottleBackoff::default(),
            sent: VecDeque::new(),
            spacing: Duration::ZERO,
            news: News::default(),
        }
    }
}

impl<K, V> State<K, V> {
    pub(super) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// `ids` is how many a call takes.
    fn plan(&mut self, settings: &PollSettings, ids: usize) -> Plan {
        let now = Instant::now();
        let Some(deadline) = self.subscribers.values().map(|one| one.deadline).max() else {
            self.polling = false;
            return Plan::End;
        };
        if let Some(until) = self.backoff.until(now) {
            return Plan::DecideAt(until);
        }
        self.learned.refresh();
        while self.sent.front().is_some_and(|sent| now - *sent >= SECOND) {
            self.sent.pop_front();
        }
        let all = self.subscribers.values();
        let due = all.clone().filter_map(|one| one.due(now, settings)).min();
        if due.is_some_and(|due| due <= now) {
            return Plan::Poll(deadline);
        }
        let waits: Vec<_> = all.filter_map(|one| one.wait(now, &self.learned)).collect();
        // The more calls there are, the more each costs: they add up to the account's quota. Where the quota is
        // known, a call also delays those of other processes by the time between two calls.
        let cost = settings.call_cost.as_secs_f64() * (1.0 + self.sent.len() as f64)
            + QUOTA_SHARE * self.spacing.as_secs_f64();
        let idle = self.sent.back().map_or(SECOND, |sent| now - *sent);
        let pause = match waits.len() {
            0 => None,
            count if count > ids => {
                let idle = idle.as_secs_f64();
                Some(schedule::crowd_pause(&waits, ids, &self.news, idle))
            }
            _ => Some(schedule::pause(&waits, cost)),
        };
        if pause == Some(Duration::ZERO) {
            return Plan::Poll(deadline);
        }
        let pause = pause.map(|pause| now + pause);
        let next = pause.into_iter().chain(due).min();
        Plan::DecideAt(next.unwrap_or(now + SECOND))
    }
}

impl<K, V> Shared<K, V>
where
    K: Clone + Ord + Debug + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    /// Polls until nobody waits; then calls under way are dropped.
    pub(super) async fn run(self: Arc<Self>) {
        let mut calls = JoinSet::new();
        loop {
            while calls.try_join_next().is_some() {}
            let planned = Instant::now();
            let plan = self.lock().plan(&self.settings, self.source.ids);
            match plan {
                Plan::End => return,
                Plan::DecideAt(time) => tokio::select! {
                    // In a fixed order, so that a simulation runs the same each time.
                    biased;
                    () = tokio::time::sleep_until(time) => {}
                    () = self.changed.notified() => {
                        tokio::time::sleep_until(time.min(planned + DEBOUNCE)).await;
                    }
                },
                Plan::Poll(deadline) => tokio::select! {
                    biased;
                    spacing = (self.source.ready)(deadline) => {
                        self.lock().spacing = spacing;
                        if let Some(poll) = self.bind() {
                            let shared = Arc::clone(&self);
                            let call = async move { shared.call(poll).await };
                            calls.spawn(call.in_current_span());
                        }
                    }
                    () = self.deserted() => {}
                },
            }
        }
    }

    /// Resolves when nobody waits.
    async fn deserted(&self) {
        while !self.lock().subscribers.is_empty() {
            self.changed.notified().await;
        }
    }

    /// Chooses the ids of a poll that can be sent now: all, or the most urgent.
    fn bind(&self) -> Option<Poll<K>> {
        let now = Instant::now();
        let mut state = self.lock();
        let number = state.number();
        let State {
            subscribers,
            learned,
            witnesses,
            sent,
            news,
            ..
        } = &mut *state;
        let mut all: BTreeMap<&K, (f64, Vec<u64>)> = BTreeMap::new();
        for (number, one) in &*subscribers {
            if one.shares(now, &self.settings) {
                let (urgency, numbers) = all.entry(&one.key).or_default();
                *urgency = urgency.max(one.urgency(now, &self.settings, learned));
                numbers.push(*number);
            }
        }
        let mut all: Vec<_> = all.into_iter().collect();
        let ids = self.source.ids;
        if all.len() > ids {
            all.select_nth_unstable_by(ids, |(a, (one, _)), (b, (other, _))| {
                other.total_cmp(one).then_with(|| a.cmp(b))
            });
            all.truncate(ids);
        }
        let all = all.into_iter();
        let bound: BTreeMap<K, _> = all.map(|(key, (_, all))| (key.clone(), all)).collect();
        let mut deadline = None;
        for shared in bound.values().flatten() {
            if let Some(one) = subscribers.get_mut(shared) {
                news.expect(one.wait(now, learned).map_or(0.0, |wait| wait.shown(0.0)));
                one.poll(number, now);
                deadline = deadline.max(Some(one.deadline));
            }
        }
        let mut keys: Vec<K> = bound.keys().cloned().collect();
        if keys.len() < self.source.ids {
            keys.extend(witnesses.beside(&keys));
        }
        sent.push_back(now);
        Some(Poll {
            number,
            sent: now,
            deadline: deadline?.at_most(LONGEST_CALL),
            keys,
            subscribers: bound,
        })
    }

    async fn call(&self, mut poll: Poll<K>) {
        let keys = std::mem::take(&mut poll.keys);
        let deliver = |keys: &[K], outcome| self.deliver(&poll, keys, outcome);
        let describe = self.source.describe(keys, poll.deadline, deliver);
        describe.await;
        self.changed.notify_one();
    }

    fn deliver(&self, poll: &Poll<K>, keys: &[K], outcome: Result<Found<K, V>>) {
        let mut state = self.lock();
        let State {
            subscribers,
            witnesses,
            backoff,
            ..
        } = &mut *state;
        backoff.after(poll.sent, outcome.as_ref().err());
        let outcome = outcome.map_err(Arc::new).map(|mut found| {
            let rows = std::mem::take(&mut found.rows).into_iter();
            let rows: BTreeMap<_, _> = rows.map(|(k, v)| (k, Arc::new(v))).collect();
            (rows, found)
        });
        for key in keys {
            let observation = match &outcome {
                Err(error) => Observation::Failed(Arc::clone(error)),
                Ok((rows, found)) => match (rows.get(key), found.unreadable(key)) {
                    (Some(row), _) => {
                        witnesses.remember(key);
                        Observation::Row(Arc::clone(row))
                    }
                    (None, Some(error)) => Observation::Failed(Arc::new(error)),
                    (None, None) => {
                        witnesses.forget(key);
                        let witnessed = !rows.is_empty();
                        Observation::Missing { witnessed }
                    }
                },
            };
            for number in poll.subscribers.get(key).into_iter().flatten() {
                let Some(one) = subscribers.get_mut(number) else {
                    continue;
                };
                let is_news = match &observation {
                    Observation::Failed(error) => one.fail(poll.number, error.wait()),
                    Observation::Row(_) | Observation::Missing { .. } => {
                        one.answer(poll.number, poll.sent)
                    }
                };
                if is_news {
                    one.notify(poll.sent, observation.clone());
                }
            }
        }
    }
}
