//! The interface of a poller: a single observation, and waits.

use std::fmt::{self, Debug, Display};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::learned::get_or_start;
use super::observation::is_transient;
use super::polling::Shared;
use super::source::Source;
use super::waiter::Waiter;
use super::{OVERDUE, Observation, Operation, OperationKind, PollMode, RunningOperations, WaitError};
use crate::base::{Deadline, Tasks, lock, span};

type Result<T> = std::result::Result<T, WaitError>;

/// Shared polling of resources of one kind.
pub struct Poller<K, V> {
    pub(super) shared: Arc<Shared<K, V>>,
    running: RunningOperations<(K, Operation)>,
    tasks: Tasks,
}

/// Capacity for observations that a waiter has not processed yet. Further ones are dropped.
const OBSERVATIONS: usize = 4;

impl<K, V> Poller<K, V>
where
    K: Clone + Ord + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    pub(super) fn new(tasks: Tasks, source: Source<K, V>) -> Self {
        let shared = Arc::new(Shared::new(source));
        let running = RunningOperations::default();
        Self { shared, running, tasks }
    }

    /// The state by one describe call, which is shared with concurrent callers.
    ///
    /// # Errors
    /// When the cloud rejects the call, or the deadline passes.
    pub async fn observe(&self, id: &K, deadline: Deadline) -> Result<Observation<V>> {
        self.wait_until(id, deadline, PollMode::Current, Some).await
    }

    /// Adds resources that must be visible to the current access key. One of them is described together with others, so
    /// that the absence of those means something.
    pub fn add_canaries<'a>(&self, ids: impl IntoIterator<Item = &'a K>)
    where
        K: 'a,
    {
        let key = (self.shared.source.key)();
        let mut state = lock(&self.shared.state);
        state.canaries.set_key(key);
        ids.into_iter().for_each(|id| state.canaries.insert(id));
    }

    /// Whether a resource of this cluster was visible to the current access key.
    #[must_use]
    pub fn has_canary(&self) -> bool {
        let key = (self.shared.source.key)();
        let mut state = lock(&self.shared.state);
        state.canaries.set_key(key);
        !state.canaries.is_empty()
    }

    /// The describe action, which is also the name of its permission.
    #[must_use]
    pub fn action(&self) -> &'static str {
        self.shared.source.action
    }

    /// Waits until `decide` returns something. It is called with the responses to requests sent after this call, at
    /// growing intervals. A transient failure is not a response.
    ///
    /// A row that cannot be parsed ends the wait.
    ///
    /// # Errors
    /// When the cloud rejects the call, or the deadline passes.
    pub async fn wait_until<T>(
        &self,
        id: &K,
        deadline: Deadline,
        mode: PollMode,
        decide: impl FnMut(Observation<V>) -> Option<T>,
    ) -> Result<T> {
        let wait = self.wait_from(id, deadline, Instant::now(), mode, decide);
        span::in_phase(wait, span::POLL).await
    }

    /// As [`Self::wait_until`], for the end of an operation that the cloud has accepted: the polls are sent when such
    /// operations are likely to end. A call for an operation that is known to be overdue makes one observation.
    ///
    /// # Errors
    /// [`WaitError::Overdue`] once the operation has been running for [`OVERDUE`]; when the cloud rejects the call, or
    /// the deadline passes.
    pub async fn wait_until_done<T>(
        &self,
        id: &K,
        deadline: Deadline,
        operation: impl Into<OperationKind>,
        mut decide: impl FnMut(Observation<V>) -> Option<T>,
    ) -> Result<T> {
        let kind = operation.into();
        let key = (id.clone(), kind.operation);
        let mut is_missing = false;
        let decide = |observation: Observation<V>| {
            is_missing = matches!(observation, Observation::Missing { .. });
            decide(observation)
        };
        let since = self.running.start(&key);
        let mode = PollMode::Operation(kind);
        let outcome = self.wait_until_since(id, deadline, mode, since, decide).await;
        // A resource that is missing is not known to be in progress: the next call waits for it.
        let is_running = matches!(outcome, Err(WaitError::Overdue { .. } | WaitError::Deadline { .. }));
        if !is_running || is_missing {
            self.running.end(&key);
        }
        outcome
    }

    /// Whether an earlier call has waited for the operation, and it may still be running.
    pub fn is_running(&self, id: &K, operation: Operation) -> bool {
        self.running.since(&(id.clone(), operation)).is_some()
    }

    /// As [`Self::wait_until`], for a change or operation that has been due or running since then, until it is overdue:
    /// then it ends with one observation made after that. The wait for this observation is not limited, since it may be
    /// due to the rate limit.
    ///
    /// # Errors
    /// As [`Self::wait_until_done`].
    pub async fn wait_until_since<T>(
        &self,
        id: &K,
        deadline: Deadline,
        mode: PollMode,
        since: Instant,
        mut decide: impl FnMut(Observation<V>) -> Option<T>,
    ) -> Result<T> {
        let wait = async {
            let limit = since + OVERDUE;
            if limit > Instant::now() {
                let wait = self.wait_from(id, deadline, since, mode, &mut decide);
                if let Ok(outcome) = tokio::time::timeout_at(limit, wait).await {
                    return outcome;
                }
            }
            let once = |observation: Observation<V>| {
                let last = observation.to_string();
                Some(decide(observation).ok_or(last))
            };
            let observed = self.wait_from(id, deadline, Instant::now(), PollMode::Current, once);
            observed.await?.map_err(|last| WaitError::Overdue {
                running: since.elapsed(),
                last,
            })
        };
        span::in_phase(wait, span::POLL).await
    }

    /// As [`Self::wait_until`], for an operation that was accepted at that time.
    async fn wait_from<T>(
        &self,
        id: &K,
        deadline: Deadline,
        accepted: Instant,
        mode: PollMode,
        mut decide: impl FnMut(Observation<V>) -> Option<T>,
    ) -> Result<T> {
        let (sender, mut observations) = mpsc::channel(OBSERVATIONS);
        // The response that accepted the operation took as long as one to a poll does.
        let latency = lock(&self.shared.state).latency;
        let began = accepted.checked_sub(latency).unwrap_or(accepted);
        let interval = self.shared.source.interval;
        let waiter = Waiter::new(mode.clone(), began, deadline, sender, interval);
        let (shared, key) = (&self.shared, self.subscribe(id, waiter));
        let _subscription = scopeguard::guard(key, |key| {
            lock(&shared.state).waiters.remove(&key);
            shared.changed.notify_one();
        });
        let mut last = "nothing yet".to_owned();
        let mut not_done = 0.0;
        while let Ok(Some((sent, outcome))) = deadline.bound(observations.recv()).await {
            match outcome {
                Ok(observation) => {
                    last = observation.to_string();
                    let age = (sent - began).as_secs_f64();
                    if let Some(decided) = decide(observation) {
                        if let PollMode::Operation(kind) = &mode {
                            let mut state = lock(&shared.state);
                            get_or_start(&mut state.learned, kind).add(not_done, age);
                            state.calibration.record_end();
                        }
                        return Ok(decided);
                    }
                    not_done = age;
                }
                Err(error) if is_transient(&error) => last = error.to_string(),
                Err(error) => return Err(WaitError::Cloud(error)),
            }
            shared.changed.notify_one();
        }
        Err(WaitError::Deadline { last })
    }

    fn subscribe(&self, id: &K, mut waiter: Waiter<V>) -> (K, u64) {
        let mut state = lock(&self.shared.state);
        if let PollMode::Operation(kind) = &waiter.mode {
            let waiters = state.waiters.len();
            waiter.set_probe(get_or_start(&mut state.learned, kind).probe(waiters));
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
        key
    }
}

impl<K, V> Debug for Poller<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Poller of {}", self.shared.source.action)
    }
}
