//! The interface of a poller: a single observation, and waits.

use std::fmt::{self, Debug, Display};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::observation::is_transient;
use super::polling::Shared;
use super::source::Source;
use super::waiter::{PollMode, Waiter};
use super::{Observation, OperationKind, WaitError};
use crate::base::{Deadline, InPhase, Phase, Tasks};

type Result<T> = std::result::Result<T, WaitError>;

/// Shared polling of resources of one kind.
pub struct Poller<K, V> {
    pub(super) shared: Arc<Shared<K, V>>,
    tasks: Tasks,
}

/// Capacity for observations that a waiter has not processed yet. Further ones are dropped.
const OBSERVATIONS: usize = 4;

/// Removes the waiter when dropped.
struct Subscription<'a, K: Clone + Ord, V> {
    shared: &'a Shared<K, V>,
    key: (K, u64),
}

impl<K, V> Poller<K, V>
where
    K: Clone + Ord + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    pub(super) fn new(tasks: Tasks, source: Source<K, V>) -> Self {
        let shared = Arc::new(Shared::new(source));
        Self { shared, tasks }
    }

    /// The state by one describe call, which is shared with concurrent callers.
    ///
    /// # Errors
    /// When the cloud rejects the call, or the deadline passes.
    pub async fn observe(&self, id: &K, deadline: Deadline) -> Result<Observation<V>> {
        self.wait(id, deadline, PollMode::Current, Some)
            .in_phase(Phase::Poll)
            .await
    }

    /// Waits for a change that may come at any time: until `decide` returns something. It is called with the responses
    /// to requests sent after this call, at growing intervals.
    ///
    /// A row that cannot be parsed ends the wait.
    ///
    /// # Errors
    /// When the cloud rejects the call, or the deadline passes.
    pub async fn wait_until<T>(
        &self,
        id: &K,
        deadline: Deadline,
        decide: impl FnMut(Observation<V>) -> Option<T>,
    ) -> Result<T> {
        self.wait(id, deadline, PollMode::Change, decide)
            .in_phase(Phase::Poll)
            .await
    }

    /// As [`Self::wait_until`], for the end of an operation that the cloud has just accepted: the polls are sent when
    /// such operations are likely to end.
    ///
    /// # Errors
    /// When the cloud rejects the call, or the deadline passes.
    pub async fn wait_until_done<T>(
        &self,
        id: &K,
        deadline: Deadline,
        operation: impl Into<OperationKind>,
        decide: impl FnMut(Observation<V>) -> Option<T>,
    ) -> Result<T> {
        let mode = PollMode::Operation(operation.into());
        self.wait(id, deadline, mode, decide)
            .in_phase(Phase::Poll)
            .await
    }

    /// Calls `decide` with each observation until it returns something. A transient failure is not an observation.
    pub(super) async fn wait<T>(
        &self,
        id: &K,
        deadline: Deadline,
        mode: PollMode,
        mut decide: impl FnMut(Observation<V>) -> Option<T>,
    ) -> Result<T> {
        let (sender, mut observations) = mpsc::channel(OBSERVATIONS);
        let joined = Instant::now();
        // The response that accepted the operation took as long as one to a poll does.
        let latency = self.shared.lock().latency;
        let began = joined.checked_sub(latency).unwrap_or(joined);
        let interval = self.shared.source.interval;
        let waiter = Waiter::new(mode.clone(), joined, began, deadline, sender, interval);
        let subscription = self.subscribe(id, waiter);
        let mut last = "nothing yet".to_owned();
        let mut not_done = 0.0;
        while let Ok(Some((sent, outcome))) = deadline.bound(observations.recv()).await {
            match outcome {
                Ok(observation) => {
                    last = observation.to_string();
                    let age = (sent - began).as_secs_f64();
                    if let Some(decided) = decide(observation) {
                        if let PollMode::Operation(kind) = &mode {
                            let mut state = self.shared.lock();
                            state.learned.get_or_start(kind).add(not_done, age);
                            state.calibration.record_end();
                        }
                        return Ok(decided);
                    }
                    not_done = age;
                }
                Err(error) if is_transient(&error) => last = error.to_string(),
                Err(error) => return Err(WaitError::Cloud(error)),
            }
            subscription.shared.changed.notify_one();
        }
        Err(WaitError::Deadline { last })
    }

    fn subscribe(&self, id: &K, mut waiter: Waiter<V>) -> Subscription<'_, K, V> {
        let mut state = self.shared.lock();
        if let PollMode::Operation(kind) = &waiter.mode {
            let waiters = state.waiters.len();
            waiter.set_probe(state.learned.get_or_start(kind).probe(waiters));
        }
        state.last_number += 1;
        let key = (id.clone(), state.last_number);
        state.waiters.insert(key.clone(), waiter);
        if !std::mem::replace(&mut state.polling, true) {
            // Its calls are for all waiters, and not part of the call that came first.
            self.tasks.spawn_detached(Arc::clone(&self.shared).run());
        }
        drop(state);
        self.shared.changed.notify_one();
        let shared = &self.shared;
        Subscription { shared, key }
    }
}

impl<K: Clone + Ord, V> Drop for Subscription<'_, K, V> {
    fn drop(&mut self) {
        self.shared.lock().waiters.remove(&self.key);
        self.shared.changed.notify_one();
    }
}

impl<K, V> Debug for Poller<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller")
            .field("waiting", &self.shared.lock().waiters.len())
            .finish()
    }
}
