//! The shared waiting itself: one task while anybody waits, one description a tick.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use super::calm::Calm;
use super::found::Found;
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
    calm: Calm,
}

struct Waiter<K, V> {
    key: K,
    due: Instant,
    /// Until when its looks are brisk.
    young: Instant,
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
        let first = self.shared.pace.linger;
        let look = |seen| match seen {
            Seen::Row(row) => Some(Some(row)),
            Seen::Nothing => Some(None),
            Seen::Failed(_) => None,
        };
        self.follow(key, deadline, first, Duration::ZERO, look)
            .await
    }

    /// Waits until `decide` makes something of what is seen. It is asked once a tick or more often, only
    /// about descriptions that were started after this call, and never about a passing failure.
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
        let first = self.shared.pace.tick;
        self.follow(key, deadline, first, Duration::ZERO, decide)
            .await
    }

    /// As [`Self::until`], for the end of an order that the cloud has accepted just now: as long as it
    /// is young, looks are brisk.
    ///
    /// # Errors
    /// When the cloud cannot be asked, or the deadline passes.
    pub async fn until_done<T>(
        &self,
        key: &K,
        deadline: Deadline,
        decide: impl FnMut(Seen<V>) -> Option<T>,
    ) -> std::result::Result<T, WaitError> {
        let Pace { tick, young, .. } = self.shared.pace;
        self.follow(key, deadline, tick, young, decide).await
    }

    async fn follow<T>(
        &self,
        key: &K,
        deadline: Deadline,
        first: Duration,
        young: Duration,
        mut decide: impl FnMut(Seen<V>) -> Option<T>,
    ) -> std::result::Result<T, WaitError> {
        let (seen, mut sight) = mpsc::unbounded_channel();
        let _place = self.join(key.clone(), deadline, first, young, seen);
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
        first: Duration,
        young: Duration,
        seen: mpsc::UnboundedSender<Seen<V>>,
    ) -> Place<'_, K, V> {
        let mut state = self.shared.lock();
        let number = state.next;
        state.next += 1;
        let now = Instant::now();
        state.waiters.insert(
            number,
            Waiter {
                key,
                due: now + first,
                young: now + young,
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
                    tokio::select! {
                        biased;
                        () = self.describe() => {}
                        // It may be waiting for its turn: the call is not made for nobody.
                        () = self.deserted() => {}
                    }
                }
                // Somebody came who is due earlier, or the one who was due has left.
                () = self.joined.notified() => {}
            }
        }
    }

    /// Ends when nobody waits any more.
    async fn deserted(&self) {
        loop {
            // Created before the look, so that no leaving is missed.
            let changed = self.joined.notified();
            if self.lock().waiters.is_empty() {
                return;
            }
            changed.await;
        }
    }

    async fn describe(&self) {
        let (numbers, deadline) = {
            let mut state = self.lock();
            let now = Instant::now();
            let mut numbers: BTreeMap<K, Vec<u64>> = BTreeMap::new();
            for (number, waiter) in &mut state.waiters {
                waiter.due = now + self.pace.after(now < waiter.young);
                numbers.entry(waiter.key.clone()).or_default().push(*number);
            }
            let deadline = state.waiters.values().map(|waiter| waiter.deadline).max();
            (numbers, deadline)
        };
        let Some(deadline) = deadline else { return };
        let keys: Vec<K> = numbers.keys().cloned().collect();
        let mut throttled: Option<Arc<Error>> = None;
        for chunk in keys.chunks(IDS_A_CALL) {
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
                state.calm.after(failure.map(|error| &**error));
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
mod tests {
    use super::*;

    type Calls = Arc<Mutex<Vec<usize>>>;

    fn rows(keys: Vec<u32>, n: usize) -> Found<u32, usize> {
        Found {
            rows: keys.into_iter().map(|key| (key, n)).collect(),
            unreadable: Vec::new(),
        }
    }

    /// A cloud of numbers where a key's row is the number of calls so far.
    fn watch(calls: &Calls) -> Watch<u32, usize> {
        let calls = Arc::clone(calls);
        Watch::new(Tasks::default(), Pace::default(), move |keys, _| {
            let calls = Arc::clone(&calls);
            Box::pin(async move {
                let mut calls = calls.lock().unwrap();
                calls.push(keys.len());
                let n = calls.len();
                Ok(rows(keys, n))
            })
        })
    }

    fn at_least(n: usize) -> impl FnMut(Seen<usize>) -> Option<usize> {
        move |seen| match seen {
            Seen::Row(row) => (*row >= n).then_some(*row),
            Seen::Nothing | Seen::Failed(_) => None,
        }
    }

    fn deadline() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    #[tokio::test(start_paused = true)]
    async fn any_number_of_waiters_costs_one_call_per_hundred_ids_and_tick() {
        let calls = Calls::default();
        let watch = Arc::new(watch(&calls));
        let mut waits = tokio::task::JoinSet::new();
        for key in 0..250 {
            let watch = Arc::clone(&watch);
            waits.spawn(async move { watch.until(&key, deadline(), at_least(4)).await.is_ok() });
        }
        assert!(waits.join_all().await.into_iter().all(|ok| ok));
        // The second tick's three calls bring everybody to 4.
        assert_eq!(*calls.lock().unwrap(), [100, 100, 50, 100, 100, 50]);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waiting_costs_nothing() {
        let calls = Calls::default();
        let watch = watch(&calls);
        watch.until(&1, deadline(), at_least(2)).await.unwrap();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(calls.lock().unwrap().len(), 2);
        assert!(!watch.shared.lock().polling);
    }

    /// When each of the first looks is, in milliseconds after the wait began.
    async fn looks(n: usize, is_order: bool) -> Vec<u128> {
        let (calls, start) = (Calls::default(), Instant::now());
        let watch = watch(&calls);
        let mut seen = Vec::new();
        let note = |row| {
            seen.push(start.elapsed().as_millis());
            at_least(n)(row)
        };
        let end = if is_order {
            watch.until_done(&1, deadline(), note).await
        } else {
            watch.until(&1, deadline(), note).await
        };
        end.unwrap();
        seen
    }

    #[tokio::test(start_paused = true)]
    async fn looks_at_an_order_are_brisk_while_it_is_young_and_others_never() {
        let brisk = (2..=12).map(|n| n * 250);
        assert_eq!(
            looks(13, true).await,
            brisk.chain([3500, 4000]).collect::<Vec<_>>()
        );
        assert_eq!(looks(5, false).await, [500, 1000, 1500, 2000, 2500]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_order_shares_the_brisk_looks_of_a_young_one_and_costs_none_of_its_own() {
        let calls = Calls::default();
        let watch = watch(&calls);
        let old = watch.until_done(&1, deadline(), at_least(13 + 3));
        let young = async {
            tokio::time::sleep(Duration::from_millis(4100)).await;
            watch.until_done(&2, deadline(), at_least(13 + 3)).await
        };
        let start = Instant::now();
        let (old, young) = tokio::join!(old, young);
        assert!(old.is_ok() && young.is_ok());
        // The old one's at 4.5 s, which the young one shares, and two brisk ones.
        assert_eq!(start.elapsed(), Duration::from_secs(5));
        assert_eq!(calls.lock().unwrap()[13..], [2, 2, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_look_does_not_wait_for_the_tick() {
        let calls = Calls::default();
        let start = Instant::now();
        assert!(watch(&calls).look(&1, deadline()).await.unwrap().is_some());
        assert!(start.elapsed() < Duration::from_millis(100));
    }

    #[tokio::test(start_paused = true)]
    async fn each_refused_round_doubles_the_pause_once_however_many_chunks_it_has() {
        let at = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&at);
        let watch: Watch<u32, usize> = Watch::new(Tasks::default(), Pace::default(), {
            move |keys, _| {
                let mut at = log.lock().unwrap();
                at.push(Instant::now());
                let refused = at.len() <= 6;
                Box::pin(async move {
                    if refused {
                        return Err(Error::answered("DescribeDisks", 400, "Throttling"));
                    }
                    Ok(rows(keys, 9))
                })
            }
        });
        let watch = Arc::new(watch);
        let mut waits = tokio::task::JoinSet::new();
        for key in 0..250 {
            let watch = Arc::clone(&watch);
            waits.spawn(async move { watch.look(&key, deadline()).await.is_ok() });
        }
        assert!(waits.join_all().await.into_iter().all(|ok| ok));
        let at = at.lock().unwrap();
        let pauses: Vec<u64> = at.windows(2).map(|w| (w[1] - w[0]).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 10, 10, 0, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_that_makes_no_sense_fails_whoever_asks_for_it_and_nobody_else() {
        for (id, told) in [(Some("1"), [true, false]), (None, [true, true])] {
            let watch: Watch<u32, usize> =
                Watch::new(Tasks::default(), Pace::default(), move |_, _| {
                    let row = Unreadable {
                        id: id.map(str::to_owned),
                        reason: "no Status".to_owned(),
                    };
                    let mut found = rows(vec![3], 9);
                    found.unreadable.push(("DescribeDisks", row));
                    Box::pin(async move { Ok(found) })
                });
            for (key, told) in [1, 2].into_iter().zip(told) {
                match watch.look(&key, deadline()).await {
                    Err(WaitError::Cloud(error)) => {
                        assert!(told && error.kind() == Kind::Ambiguous, "{error}");
                    }
                    outcome => assert!(!told && matches!(outcome, Ok(None)), "{outcome:?}"),
                }
            }
            assert!(watch.look(&3, deadline()).await.unwrap().is_some());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_deadline_error_tells_what_was_seen_last() {
        let calls = Calls::default();
        let soon = Deadline::after(Duration::from_secs(1));
        let error = watch(&calls)
            .until(&1, soon, at_least(99))
            .await
            .unwrap_err();
        assert!(error.to_string().ends_with("last seen: 1"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_denied_description_ends_the_wait_and_a_passing_failure_does_not() {
        for (code, ends) in [("Forbidden.RAM", true), ("ServiceUnavailable", false)] {
            let watch: Watch<u32, usize> =
                Watch::new(Tasks::default(), Pace::default(), move |_, _| {
                    Box::pin(async move { Err(Error::answered("DescribeDisks", 403, code)) })
                });
            let soon = Deadline::after(Duration::from_secs(5));
            let error = watch.until(&1, soon, at_least(1)).await.unwrap_err();
            assert_eq!(
                matches!(error, WaitError::Cloud(_)),
                ends,
                "{code}: {error}"
            );
        }
    }
}
