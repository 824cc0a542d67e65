//! The task that polls while waiters exist.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument;

use super::Observation;
use super::canaries::Canaries;
use super::durations::Durations;
use super::learned::Learned;
use super::schedule::{self, Calibration};
use super::source::Source;
use super::waiter::{Outcome, Waiter};
use crate::Result;
use crate::action::Page;
use crate::base::{Deadline, lock, span};
use crate::error::{Error, Kind};

/// Waiters that arrive within this time are planned together.
const DEBOUNCE: Duration = Duration::from_millis(5);
/// A later response is useless: newer polls have been sent meanwhile.
const CALL_TIMEOUT: Duration = Duration::from_secs(20);
/// The lateness of one waiter that is worth one call, if no other call was sent within the last second.
const CALL_COST: Duration = Duration::from_millis(80);
/// The price of one second of the quota in seconds of one waiter's lateness, for up to one second between two calls:
/// with a higher price no call would ever be due.
const QUOTA_SHARE: f64 = 5.0;
const SECOND: Duration = Duration::from_secs(1);
/// The urgency of an id that is due; the others' is a probability.
const DUE: f64 = 2.0;
/// How long a single observation waits for other waiters to share its call.
const LINGER: Duration = Duration::from_millis(20);
/// The maximum factor of [`LINGER`].
const MAX_LINGER_FACTOR: u32 = 10;

pub(super) struct Shared<K, V> {
    pub(super) source: Source<K, V>,
    pub(super) state: Mutex<State<K, V>>,
    /// Notified when a waiter arrives or leaves.
    pub(super) changed: Notify,
}

pub(super) struct State<K, V> {
    /// By id and order of arrival.
    pub(super) waiters: BTreeMap<(K, u64), Waiter<V>>,
    pub(super) last_number: u64,
    pub(super) polling: bool,
    pub(super) learned: Learned,
    pub(super) canaries: Canaries<K>,
    /// The polls within the last second, and whether each was due for many ids.
    sent: VecDeque<(Instant, bool)>,
    /// The time between two polls that the quota permits.
    spacing: Duration,
    /// How long a response takes, smoothed.
    pub(super) latency: Duration,
    pub(super) calibration: Calibration,
}

/// A poll with its ids bound.
struct Poll<K> {
    sent: Instant,
    deadline: Deadline,
    ids: Vec<K>,
    /// The access key before the call.
    key: u64,
}

impl<K: Clone + Ord, V> State<K, V> {
    /// The waiters for this id that share a poll of that time.
    fn sharing<'a>(
        waiters: &'a mut BTreeMap<(K, u64), Waiter<V>>,
        id: &K,
        sent: Instant,
    ) -> impl Iterator<Item = &'a mut Waiter<V>> + use<'a, K, V> {
        let all = (id.clone(), 0)..=(id.clone(), u64::MAX);
        let all = waiters.range_mut(all).map(|(_, waiter)| waiter);
        all.filter(move |waiter| waiter.shares(sent))
    }

    /// Delivers the outcomes of a poll of that time to the waiters for these ids.
    fn deliver(&mut self, sent: Instant, ids: &[K], outcome: impl Fn(&K) -> Outcome<V>) {
        for id in ids {
            for waiter in Self::sharing(&mut self.waiters, id, sent) {
                waiter.deliver(sent, outcome(id));
            }
        }
    }

    /// The earliest deadline that has not passed; none if no waiter is left.
    fn deadline(&self) -> Option<Deadline> {
        let now = Deadline::after(Duration::ZERO);
        let deadlines = self.waiters.values().map(|waiter| waiter.deadline);
        deadlines.filter(|deadline| *deadline > now).min()
    }

    /// How long a single observation waits for other waiters: the longer, the more polls were sent for only a few ids.
    fn linger(&self) -> Duration {
        let few = self.sent.iter().filter(|(_, is_for_many)| !is_for_many);
        let factor = u32::try_from(few.count()).unwrap_or(u32::MAX);
        LINGER * factor.clamp(1, MAX_LINGER_FACTOR)
    }

    /// When to poll, or to plan again. A call accepts `max_ids`.
    fn plan(&mut self, max_ids: usize) -> Instant {
        let now = Instant::now();
        self.learned.values_mut().for_each(Durations::refresh);
        self.sent.retain(|(sent, _)| now - *sent < SECOND);
        let linger = self.linger();
        let all = self.waiters.values();
        let due = all.clone().filter_map(|one| one.due(now, linger));
        let due = due.min();
        if let Some(due) = due.filter(|due| *due <= now) {
            return due;
        }
        let waits: Vec<_> = all.filter_map(|one| one.wait(now, &self.learned)).collect();
        // Each call costs more the more calls there are: together they use the account's quota. If the quota is known,
        // a call also delays those of other processes by the time between two calls.
        let cost = CALL_COST.as_secs_f64() * (1.0 + self.sent.len() as f64)
            + QUOTA_SHARE * self.spacing.min(SECOND).as_secs_f64();
        let idle = self.sent.back().map_or(SECOND, |(sent, _)| now - *sent);
        let pause = match waits.len() {
            0 => None,
            count if count > max_ids => {
                let pause = schedule::crowd_pause(&waits, max_ids, self.calibration.ratio(), idle.as_secs_f64());
                Some(now + pause)
            }
            _ => Some(now + schedule::pause(&waits, cost)),
        };
        pause.into_iter().chain(due).min().unwrap_or(now + SECOND)
    }

    /// Chooses the ids of a poll that can be sent now: all, or the most urgent.
    fn bind(&mut self, max_ids: usize, key: u64) -> Option<Poll<K>> {
        let now = Instant::now();
        let linger = self.linger();
        let mut urgencies: BTreeMap<&K, f64> = BTreeMap::new();
        for ((id, _), waiter) in &self.waiters {
            if waiter.needs(now) {
                let due = waiter.due(now, linger);
                let wait = waiter.wait(now, &self.learned);
                let shown = wait.map_or(0.0, |wait| wait.shown(0.0));
                let is_due = due.is_some_and(|due| due <= now);
                let urgency = urgencies.entry(id).or_default();
                *urgency = urgency.max(if is_due { DUE } else { shown });
            }
        }
        let mut urgencies: Vec<_> = urgencies.into_iter().collect();
        if urgencies.len() > max_ids {
            urgencies.select_nth_unstable_by(max_ids, |(a, one), (b, other)| {
                other.total_cmp(one).then_with(|| a.cmp(b))
            });
            urgencies.truncate(max_ids);
        }
        let due = urgencies.iter().filter(|(_, urgency)| *urgency >= DUE);
        self.sent.push_back((now, due.count() > max_ids / 2));
        let mut bound: Vec<K> = urgencies.into_iter().map(|(id, _)| id.clone()).collect();
        let mut deadline = None;
        for id in &bound {
            for waiter in Self::sharing(&mut self.waiters, id, now) {
                let wait = waiter.wait(now, &self.learned);
                self.calibration.expect(wait.map_or(0.0, |wait| wait.shown(0.0)));
                waiter.poll(now);
                deadline = deadline.max(Some(waiter.deadline));
            }
        }
        if bound.len() < max_ids {
            self.canaries.set_key(key);
            bound.extend(self.canaries.newest_except(&bound));
        }
        Some(Poll {
            sent: now,
            deadline: deadline?.at_most(CALL_TIMEOUT),
            ids: bound,
            key,
        })
    }
}

impl<K, V> Shared<K, V>
where
    K: Clone + Ord + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    pub(super) fn new(source: Source<K, V>) -> Self {
        let state = State {
            waiters: BTreeMap::new(),
            last_number: 0,
            polling: false,
            learned: Learned::default(),
            canaries: Canaries::new(),
            sent: VecDeque::new(),
            spacing: Duration::ZERO,
            latency: Duration::ZERO,
            calibration: Calibration::default(),
        };
        Self {
            source,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// Polls until no waiter is left; then calls in flight are dropped.
    pub(super) async fn run(self: Arc<Self>) {
        let mut calls = JoinSet::new();
        while let Some((due, deadline)) = self.plan() {
            while calls.try_join_next().is_some() {}
            let now = Instant::now();
            // In a fixed order, so that a simulation runs the same each time.
            if due > now {
                tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(due) => {}
                    () = self.changed.notified() => {
                        tokio::time::sleep_until(due.min(now + DEBOUNCE)).await;
                    }
                }
                continue;
            }
            let spacing = tokio::select! {
                biased;
                spacing = (self.source.ready)(deadline) => spacing,
                () = self.deadline_change(deadline) => continue,
            };
            // Waiters with later deadlines are polled for next.
            if deadline.has_passed() {
                continue;
            }
            let poll = {
                let mut state = lock(&self.state);
                state.spacing = spacing.unwrap_or(state.spacing);
                state.bind(self.source.max_ids, (self.source.key)())
            };
            if let Some(mut poll) = poll {
                if spacing.is_none() {
                    // The call fails immediately with the reason, instead of queueing behind others for the same ids.
                    poll.deadline = deadline;
                }
                let shared = Arc::clone(&self);
                let call = async move { shared.call(poll).await };
                calls.spawn(call.in_current_span());
            }
        }
    }

    /// When to poll or to plan again, and the earliest deadline of the waiters; none without waiters.
    fn plan(&self) -> Option<(Instant, Deadline)> {
        let mut state = lock(&self.state);
        let deadline = state.deadline();
        state.polling = deadline.is_some();
        Some((state.plan(self.source.max_ids), deadline?))
    }

    /// Resolves when the earliest deadline of the waiters changes.
    async fn deadline_change(&self, deadline: Deadline) {
        while lock(&self.state).deadline() == Some(deadline) {
            self.changed.notified().await;
        }
    }

    async fn call(&self, poll: Poll<K>) {
        let deliver = |ids: &[K], page| self.deliver(poll.sent, poll.key, ids, page);
        let span = span::poll_batch(self.source.action, poll.ids.len());
        let describe = self.source.describe(poll.ids, poll.deadline, deliver);
        describe.instrument(span).await;
        self.changed.notify_one();
    }

    fn deliver(&self, sent: Instant, key: u64, ids: &[K], page: Result<Page<V>>) {
        let is_same_key = (self.source.key)() == key;
        let mut state = lock(&self.state);
        let page = match page {
            Ok(page) => page,
            Err(error) => {
                let error = Arc::new(error);
                return state.deliver(sent, ids, |_| Err(Arc::clone(&error)));
            }
        };
        let latency = sent.elapsed().min(SECOND);
        let known = Some(state.latency).filter(|known| !known.is_zero());
        state.latency = (known.unwrap_or(latency) * 3 + latency) / 4;
        let rows = page.rows.into_iter();
        let rows: BTreeMap<K, _> = rows.map(|row| ((self.source.id)(&row), Arc::new(row))).collect();
        let is_canary = |id: &&K| {
            let row: Option<&Arc<V>> = rows.get(id);
            row.is_some_and(|row| state.canaries.contains(id) || (self.source.is_canary)(row))
        };
        let canaries: Vec<&K> = ids.iter().filter(is_canary).collect();
        // A page that ends early, or has only rows that were not requested, proves nothing about the missing ones.
        let canary = is_same_key && page.next.is_none() && !canaries.is_empty();
        ids.iter().for_each(|id| state.canaries.remove(id));
        if is_same_key {
            state.canaries.set_key(key);
            canaries.iter().for_each(|id| state.canaries.insert(id));
        }
        state.deliver(sent, ids, |id| {
            if let Some(row) = rows.get(id) {
                return Ok(Observation::Row(Arc::clone(row)));
            }
            // A row that cannot be parsed may be that of this id.
            let text = id.to_string();
            let mut unreadable = page.unreadable.iter();
            match unreadable.find(|row| row.id.as_ref().is_none_or(|id| *id == text)) {
                Some(row) => {
                    let error = Error::new(Kind::Ambiguous, self.source.action);
                    Err(Arc::new(error.with_source(row.clone())))
                }
                None => Ok(Observation::Missing { canary }),
            }
        });
    }
}
