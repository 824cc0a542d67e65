//! What callers have of a poller: a single look, and waits.

use std::fmt::{self, Debug, Display};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, mpsc};

use super::batch::Source;
use super::evidence::{Deleted, Evidence};
use super::observation::is_transient;
use super::polling::{Shared, State};
use super::subscriber::{PollMode, Subscriber};
use super::{Look, Observation, OperationKind, PollSettings, WaitError};
use crate::base::{Deadline, Tasks};

type Result<T> = std::result::Result<T, WaitError>;

/// Shared polling of resources of one kind.
pub struct Poller<K, V> {
    pub(super) shared: Arc<Shared<K, V>>,
    tasks: Tasks,
    pub(super) evidence: Option<Evidence<K>>,
    pub(super) deleted: Deleted<K>,
}

/// Unsubscribes when dropped.
struct Subscription<'a, K, V> {
    shared: &'a Shared<K, V>,
    number: u64,
}

impl<K, V> Poller<K, V>
where
    K: Clone + Ord + Debug + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    pub(super) fn new(tasks: Tasks, settings: PollSettings, source: Source<K, V>) -> Self {
        let shared = Shared {
            source,
            settings,
            state: Mutex::new(State::default()),
            changed: Notify::new(),
        };
        Self {
            shared: Arc::new(shared),
            tasks,
            evidence: None,
            deleted: Deleted::default(),
        }
    }

    /// With a way to prove absence where no other resource of the kind is known.
    pub(super) fn with_evidence(mut self, evidence: Evidence<K>) -> Self {
        self.evidence = Some(evidence);
        self
    }

    /// The state by one describe, shared with everybody who looks or waits at the same time.
    ///
    /// # Errors
    /// When the cloud rejects the call, or the deadline passes.
    pub async fn look(&self, key: &K, deadline: Deadline) -> Result<Look<V>> {
        let decide = |observation| match observation {
            Observation::Row(row) => Some(Look::Row(row)),
            Observation::Missing { witnessed } => Some(Look::Missing { witnessed }),
            Observation::Failed(_) => None,
        };
        self.follow(key, deadline, None, PollMode::Once, decide)
            .await
    }

    /// Waits for a change that may come at any time: until `decide` returns something. It is asked about responses to
    /// requests sent after this call, at growing intervals, and never about a transient failure.
    ///
    /// A row that cannot be parsed ends the wait.
    ///
    /// # Errors
    /// When the cloud rejects the call, or the deadline passes.
    pub async fn until<T>(
        &self,
        key: &K,
        deadline: Deadline,
        decide: impl FnMut(Observation<V>) -> Option<T>,
    ) -> Result<T> {
        self.follow(key, deadline, None, PollMode::Change, decide)
            .await
    }

    /// As [`Self::until`], for the end of an operation that the cloud has just accepted: it is polled for when such
    /// operations are likely to end.
    ///
    /// # Errors
    /// When the cloud rejects the call, or the deadline passes.
    pub async fn until_done<T>(
        &self,
        key: &K,
        deadline: Deadline,
        operation: impl Into<OperationKind>,
        decide: impl FnMut(Observation<V>) -> Option<T>,
    ) -> Result<T> {
        let (mode, probe) = {
            let mut state = self.shared.lock();
            let number = state.learned.number(&operation.into());
            let waiters = state.subscribers.len();
            let probe = state.learned.get_mut(number).probe(waiters);
            (PollMode::Operation(number), probe)
        };
        self.follow(key, deadline, probe, mode, decide).await
    }

    /// Says that this resource exists: its row in a response shows that another's absence is not due to a missing
    /// permission.
    pub fn remember(&self, key: &K) {
        self.shared.lock().witnesses.remember(key);
    }

    /// Says that this resource may not exist any longer.
    pub fn forget(&self, key: &K) {
        self.shared.lock().witnesses.forget(key);
    }

    async fn follow<T>(
        &self,
        key: &K,
        deadline: Deadline,
        probe: Option<f64>,
        mode: PollMode,
        mut decide: impl FnMut(Observation<V>) -> Option<T>,
    ) -> Result<T> {
        let (sender, mut observations) = mpsc::unbounded_channel();
        let probe = probe.map(Duration::from_secs_f64);
        let subscriber = Subscriber::new(key.clone(), mode, deadline, probe, sender);
        let joined = subscriber.joined;
        let subscription = self.subscribe(subscriber);
        let mut last = None;
        let mut not_done = 0.0;
        loop {
            let Ok(Some((sent, observation))) = deadline.bound(observations.recv()).await else {
                let last = last.map_or_else(
                    || "nothing yet".to_owned(),
                    |observation: Observation<V>| observation.to_string(),
                );
                return Err(WaitError::Deadline { last });
            };
            match &observation {
                Observation::Failed(error) if !is_transient(error) => {
                    return Err(WaitError::Cloud(Arc::clone(error)));
                }
                Observation::Failed(_) => {}
                Observation::Row(_) | Observation::Missing { .. } => {
                    let outcome = decide(observation.clone());
                    let age = (sent - joined).as_secs_f64();
                    if let (Some(_), PollMode::Operation(number)) = (&outcome, mode) {
                        let mut state = self.shared.lock();
                        state.learned.get_mut(number).add(not_done, age);
                        state.news.end();
                    }
                    if let Some(outcome) = outcome {
                        return Ok(outcome);
                    }
                    not_done = age;
                }
            }
            last = Some(observation);
            subscription.resume();
        }
    }

    fn subscribe(&self, subscriber: Subscriber<K, V>) -> Subscription<'_, K, V> {
        let mut state = self.shared.lock();
        let number = state.number();
        state.subscribers.insert(number, subscriber);
        if !std::mem::replace(&mut state.polling, true) {
            let shared = Arc::clone(&self.shared);
            self.tasks.start(shared.run());
        }
        drop(state);
        self.shared.changed.notify_one();
        Subscription {
            shared: &self.shared,
            number,
        }
    }
}

impl<K, V> Subscription<'_, K, V> {
    fn resume(&self) {
        let mut state = self.shared.lock();
        if let Some(subscriber) = state.subscribers.get_mut(&self.number) {
            subscriber.resume();
        }
        drop(state);
        self.shared.changed.notify_one();
    }
}

impl<K, V> Drop for Subscription<'_, K, V> {
    fn drop(&mut self) {
        self.shared.lock().subscribers.remove(&self.number);
        self.shared.changed.notify_one();
    }
}

impl<K, V> Debug for Poller<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller")
            .field("waiting", &self.shared.lock().subscribers.len())
            .finish()
    }
}
