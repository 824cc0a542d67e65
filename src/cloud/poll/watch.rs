//! The shared waiting itself: one task while anybody waits, one description a round.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::calm::Calm;
use super::found::Found;
use super::round::{Manner, Round};
use super::seen::is_passing;
use super::{IDS_A_CALL, Pace, Seen, WaitError};
use crate::base::{Deadline, Tasks};
use crate::cloud::Result;
use crate::cloud::action::Unreadable;
use crate::cloud::error::{Error, Kind};

type Fetch<K, V> = dyn Fn(Vec<K>, Deadline) -> Pin<Box<dyn Future<Output = Result<Found<K, V>>> + Send>>
    + Send
    + Sync;

/// Shared looks at resources of one kind.
pub struct Watch<K, V> {
    shared: Arc<Shared<K, V>>,
    tasks: Tasks,
}

struct Shared<K, V> {
    fetch: Box<Fetch<K, V>>,
    pace: Pace,
    state: Mutex<State<K, V>>,
    joined: Notify,
}

struct State<K, V> {
    waiters: BTreeMap<u64, Waiter<K, V>>,
    next: u64,
    polling: bool,
    /// When the tick of all was last.
    ticked: Option<Instant>,
    calm: Calm,
}

/// The numbers of those who hear of a description, by what they ask for, and by when the last of them
/// needs it.
struct Hearers<K> {
    numbers: BTreeMap<K, Vec<u64>>,
    deadline: Deadline,
}

struct Waiter<K, V> {
    key: K,
    manner: Manner,
    due: Instant,
    deadline: Deadline,
    seen: mpsc::UnboundedSender<Seen<V>>,
}

/// Takes its waiter off the list when dropped.
struct Place<'a, K, V> {
    shared: &'a Shared<K, V>,
    number: u64,
}

impl<K, V> Watch<K, V>
where
    K: Clone + Ord + Debug + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    pub(super) fn new(
        tasks: Tasks,
        pace: Pace,
        fetch: impl Fn(Vec<K>, Deadline) -> Pin<Box<dyn Future<Output = Result<Found<K, V>>> + Send>>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        let state = State {
            waiters: BTreeMap::new(),
            next: 0,
            polling: false,
            ticked: None,
            calm: Calm::default(),
        };
        let shared = Shared {
            fetch: Box::new(fetch),
            pace,
            state: Mutex::new(state),
            joined: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
            tasks,
        }
    }

    /// One look, shared with whoever looks or waits at the same time. None when there is no row.
    ///
    /// # Errors
    /// When the cloud cannot be asked, or the deadline passes.
    pub async fn look(
        &self,
        key: &K,
        deadline: Deadline,
    ) -> std::result::Result<Option<Arc<V>>, WaitError> {
        let look = |seen| match seen {
            Seen::Row(row) => Some(Some(row)),
            Seen::Nothing => Some(None),
            Seen::Failed(_) => None,
        };
        self.follow(key, deadline, Manner::Look, look).await
    }

    /// Waits until `decide` makes something of what is seen. It is asked once a tick, only about
    /// descriptions that were started after this call, and never about a passing failure.
    ///
    /// A row that makes no sense ends it: nobody knows when it will.
    ///
    /// # Errors
    /// When the cloud cannot be asked, or the deadline passes.
    pub async fn until<T>(
        &self,
        key: &K,
        deadline: Deadline,
        decide: impl FnMut(Seen<V>) -> Option<T>,
    ) -> std::result::Result<T, WaitError> {
        self.follow(key, deadline, Manner::Wait, decide).await
    }

    /// As [`Self::until`], for the end of an order that the cloud has accepted: as long as this wait is
    /// young, looks are brisk.
    ///
    /// # Errors
    /// When the cloud cannot be asked, or the deadline passes.
    pub async fn until_done<T>(
        &self,
        key: &K,
        deadline: Deadline,
        decide: impl FnMut(Seen<V>) -> Option<T>,
    ) -> std::result::Result<T, WaitError> {
        let young = Instant::now() + self.shared.pace.young;
        let order = Manner::Order { young };
        self.follow(key, deadline, order, decide).await
    }

    async fn follow<T>(
        &self,
        key: &K,
        deadline: Deadline,
        manner: Manner,
        mut decide: impl FnMut(Seen<V>) -> Option<T>,
    ) -> std::result::Result<T, WaitError> {
        let (seen, mut sight) = mpsc::unbounded_channel();
        let _place = self.join(key.clone(), deadline, manner, seen);
        let mut last = None;
        loop {
            let Ok(Some(seen)) = deadline.bound(sight.recv()).await else {
                let last = last.map_or_else(
                    || "nothing yet".to_owned(),
                    |seen: Seen<V>| seen.to_string(),
                );
                return Err(WaitError::Deadline { last });
            };
            match &seen {
                Seen::Failed(error) if !is_passing(error) => {
                    return Err(WaitError::Cloud(Arc::clone(error)));
                }
                Seen::Failed(_) => {}
                Seen::Row(_) | Seen::Nothing => {
                    if let Some(outcome) = decide(seen.clone()) {
                        return Ok(outcome);
                    }
                }
            }
            last = Some(seen);
        }
    }

    fn join(
        &self,
        key: K,
        deadline: Deadline,
        manner: Manner,
        seen: mpsc::UnboundedSender<Seen<V>>,
    ) -> Place<'_, K, V> {
        let mut state = self.shared.lock();
        let number = state.next;
        state.next += 1;
        let due = Instant::now() + manner.first(self.shared.pace);
        state.waiters.insert(
            number,
            Waiter {
                key,
                manner,
                due,
                deadline,
                seen,
            },
        );
        if !std::mem::replace(&mut state.polling, true) {
            let shared = Arc::clone(&self.shared);
            self.tasks.start(async move { shared.poll().await });
        }
        drop(state);
        self.shared.joined.notify_one();
        Place {
            shared: &self.shared,
            number,
        }
    }
}

impl<K, V> Shared<K, V>
where
    K: Clone + Ord + Debug + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    /// Describes what is waited for, when the first waiter is due, until nobody waits.
    async fn poll(&self) {
        loop {
            let due = {
                let mut state = self.lock();
                match state.waiters.values().map(|waiter| waiter.due).min() {
                    Some(due) => state.calm.until().map_or(due, |calm| due.max(calm)),
                    None => {
                        state.polling = false;
                        return;
                    }
                }
            };
            tokio::select! {
                // In a fixed order, so that a simulation runs the same each time.
                biased;
                () = tokio::time::sleep_until(due) => {
                    let Some(hearers) = self.hearers() else { continue };
                    let numbers: Vec<u64> = hearers.numbers.values().flatten().copied().collect();
                    tokio::select! {
                        biased;
                        () = self.describe(hearers) => {}
                        // It may be waiting for its turn: the call is not made for nobody.
                        () = self.deserted(&numbers) => {}
                    }
                }
                // Somebody came who is due earlier, or the one who was due has left.
                () = self.joined.notified() => {}
            }
        }
    }

    /// Ends when none of these waits any more.
    async fn deserted(&self, numbers: &[u64]) {
        loop {
            // Created before the look, so that no leaving is missed.
            let changed = self.joined.notified();
            let waiters =
                |state: &State<K, V>| numbers.iter().any(|n| state.waiters.contains_key(n));
            if !waiters(&self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Who hears of the description of now; none when all who were due have left.
    fn hearers(&self) -> Option<Hearers<K>> {
        let mut state = self.lock();
        let round = Round::now(
            self.pace,
            state.ticked,
            state.calm.is_unbroken(),
            state
                .waiters
                .values()
                .map(|waiter| (waiter.manner, waiter.due)),
        );
        state.ticked = round.ticked();
        let mut numbers: BTreeMap<K, Vec<u64>> = BTreeMap::new();
        let mut deadline = None;
        for (number, waiter) in &mut state.waiters {
            if let Some(next) = round.next(waiter.manner, waiter.due) {
                waiter.due = next;
                numbers.entry(waiter.key.clone()).or_default().push(*number);
                deadline = deadline.max(Some(waiter.deadline));
            }
        }
        Some(Hearers {
            numbers,
            deadline: deadline?,
        })
    }

    async fn describe(&self, Hearers { numbers, deadline }: Hearers<K>) {
        let keys: Vec<K> = numbers.keys().cloned().collect();
        let mut throttled: Option<Arc<Error>> = None;
        for chunk in keys.chunks(IDS_A_CALL) {
            let begun = Instant::now();
            let answer = match &throttled {
                // It would be refused as well.
                Some(error) => Err(Arc::clone(error)),
                None => (self.fetch)(chunk.to_vec(), deadline)
                    .await
                    .map_err(Arc::new),
            };
            let answer = answer.map(|mut found| {
                let rows = std::mem::take(&mut found.rows).into_iter();
                let rows: BTreeMap<_, _> = rows.map(|(k, v)| (k, Arc::new(v))).collect();
                (rows, found)
            });
            let mut state = self.lock();
            // One pause for one refusal, however many chunks were not sent because of it.
            if throttled.is_none() {
                let failure = answer.as_ref().err();
                state.calm.after(begun, failure.map(|error| &**error));
                throttled = failure
                    .filter(|error| error.kind() == Kind::Throttled)
                    .map(Arc::clone);
            }
            for key in chunk {
                for waiter in numbers[key]
                    .iter()
                    .filter_map(|number| state.waiters.get(number))
                {
                    let seen = match &answer {
                        Ok((rows, found)) => match (rows.get(key), found.unreadable(key)) {
                            (Some(row), _) => Seen::Row(Arc::clone(row)),
                            (None, Some((action, row))) => {
                                Seen::Failed(Arc::new(unreadable(action, row)))
                            }
                            (None, None) => Seen::Nothing,
                        },
                        Err(error) => Seen::Failed(Arc::clone(error)),
                    };
                    // A waiter that has just left has no use for it.
                    let _ = waiter.seen.send(seen);
                }
            }
        }
    }
}

fn unreadable(action: &'static str, row: &Unreadable) -> Error {
    Error::new(Kind::Ambiguous, action).with_source(row.clone())
}

impl<K, V> Shared<K, V> {
    fn lock(&self) -> MutexGuard<'_, State<K, V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Drop for Place<'_, K, V> {
    fn drop(&mut self) {
        self.shared.lock().waiters.remove(&self.number);
        self.shared.joined.notify_one();
    }
}

impl<K, V> Debug for Watch<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("waiting", &self.shared.lock().waiters.len())
            .finish()
    }
}

#[cfg(test)]
mod tests;
