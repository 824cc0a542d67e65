//! What proves that a resource does not exist.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::batch::BoxFuture;
use crate::base::Deadline;
use crate::cloud::Result;
use crate::cloud::error::{Condition, Error, Kind};

/// How old the state in a description may be (eventual consistency).
pub const LAG: Duration = Duration::from_secs(3);

/// Ids of deleted resources that are remembered. The newest matter: a call is repeated within minutes.
const DELETED: usize = 1000;

/// A resource certainly does not exist. Only evidence creates one: responses that return other resources but not this
/// one for longer than reads lag ([`AbsenceGuard`]), an accepted deletion, or an error that names the resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfirmedAbsent(());

impl ConfirmedAbsent {
    /// The deletion of the resource was accepted, or the cloud names the resource as missing.
    #[must_use]
    pub fn by_deletion(outcome: &Result<()>) -> Option<Self> {
        match outcome {
            Ok(()) => Some(Self(())),
            Err(error) => (error.kind() == Kind::NotFound).then_some(Self(())),
        }
    }

    /// The cloud names the only disk or snapshot of the request as missing.
    #[must_use]
    pub fn by_error(error: &Error) -> Option<Self> {
        let is_named = matches!(
            error.condition(),
            Condition::NoSuchDisk | Condition::NoSuchSnapshot | Condition::NotFound
        );
        is_named.then_some(Self(()))
    }

    /// Two responses that return other resources but not this one, longer apart than reads lag.
    pub(super) fn after_lag() -> Self {
        Self(())
    }
}

/// Witnessed responses without a resource, until they prove that it does not exist.
#[derive(Debug, Default)]
pub struct AbsenceGuard(Option<Instant>);

impl AbsenceGuard {
    /// A response has no row; the proof once witnessed ones had none for [`LAG`]. An unwitnessed one proves nothing, in
    /// either direction.
    pub fn missing(&mut self, witnessed: bool) -> Option<ConfirmedAbsent> {
        if !witnessed {
            return None;
        }
        let since = self.0.get_or_insert_with(Instant::now);
        (since.elapsed() >= LAG).then_some(ConfirmedAbsent(()))
    }

    /// A response has a row.
    pub fn found(&mut self) {
        self.0 = None;
    }
}

/// Resources that this process has deleted. Their ids are never used again.
#[derive(Debug)]
pub(super) struct Deleted<K>(Mutex<VecDeque<K>>);

impl<K> Default for Deleted<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq> Deleted<K> {
    pub(super) fn note(&self, key: &K) {
        let mut deleted = self.lock();
        if deleted.contains(key) {
            return;
        }
        if deleted.len() == DELETED {
            deleted.pop_front();
        }
        deleted.push_back(key.clone());
    }

    pub(super) fn proof(&self, key: &K) -> Option<ConfirmedAbsent> {
        self.lock().contains(key).then_some(ConfirmedAbsent(()))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How to prove absence where no other resource of the kind is known.
pub(super) struct Evidence<K> {
    /// The describe action, which is also the name of its permission.
    pub(super) action: &'static str,
    /// The ids on an unfiltered page.
    pub(super) page: Box<dyn Fn(Deadline) -> BoxFuture<Result<Vec<K>>> + Send + Sync>,
    /// A call without effect that names a missing resource, if there is one.
    pub(super) names: Option<Naming<K>>,
}

pub(super) type Naming<K> =
    Box<dyn Fn(K, Deadline) -> BoxFuture<Option<ConfirmedAbsent>> + Send + Sync>;
