//! When to believe what descriptions show, or do not show, against what the cloud's answers say. By
//! time and not by looks: looks are shared, and many can fall into one moment.

use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::attempts::AttemptHistory;
use crate::base::Deadline;
pub(super) use crate::cloud::view::LAG;
use crate::cloud::view::{AbsenceGuard, ConfirmedAbsent, Poller, Presence, WaitError};

/// How long what the cloud says it made may be missing from every description. Believing that it is
/// gone any sooner would make a second one.
pub(super) const UNSEEN: Duration = Duration::from_secs(10);

/// Looks that contradict an answer of the cloud, without a break.
#[derive(Debug, Default)]
pub(super) struct StaleReadGuard(Option<Instant>);

impl StaleReadGuard {
    /// A look contradicts; true once the looks have done so for this long.
    pub(super) fn holds(&mut self, long: Duration) -> bool {
        self.0.get_or_insert_with(Instant::now).elapsed() >= long
    }

    /// A look agrees.
    pub(super) fn ends(&mut self) {
        self.0 = None;
    }
}

/// Responses without a resource that the cloud says it created, in this call and in those before it: one call may end
/// sooner than its absence is proven.
#[derive(Debug)]
pub(super) struct NotFoundConfirmation<'a> {
    attempts: &'a AttemptHistory,
    name: &'a str,
    id: &'a str,
    shown: bool,
    any: StaleReadGuard,
    witnessed: AbsenceGuard,
}

impl<'a> NotFoundConfirmation<'a> {
    /// For the resource of this id that the name has.
    pub(super) fn new(attempts: &'a AttemptHistory, name: &'a str, id: &'a str) -> Self {
        Self {
            attempts,
            name,
            id,
            shown: false,
            any: StaleReadGuard::default(),
            witnessed: AbsenceGuard::default(),
        }
    }

    /// A response has its row.
    pub(super) fn shown(&mut self) {
        self.shown = true;
        self.any.ends();
        self.witnessed.found();
        self.attempts.seen(self.name);
    }

    /// A response has no row; the proof once it is certain that the resource no longer exists.
    pub(super) fn missed(&mut self, witnessed: bool) -> Option<ConfirmedAbsent> {
        let proof = self.witnessed.missing(witnessed);
        proof.filter(|_| self.is_overdue())
    }

    /// A response has no row; true once it certainly should have had one.
    pub(super) fn is_overdue(&mut self) -> bool {
        let first = self.attempts.missed(self.name, self.id);
        // Nothing was read between two calls, so that an early response alone proves nothing.
        self.is_late() && (self.shown || first.elapsed() >= UNSEEN)
    }

    /// A response has no row; true once reads should have caught up, so that a witness is worth a call.
    pub(super) fn is_late(&mut self) -> bool {
        self.any.holds(LAG)
    }
}

/// The row, or none if there certainly is none.
pub(super) async fn settled<K, V>(
    poller: &Poller<K, V>,
    key: &K,
    deadline: Deadline,
) -> Result<Option<Arc<V>>, WaitError>
where
    K: Clone + Ord + Debug + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    poller.settle(key, deadline).await.map(Presence::row)
}

/// The row in the expected state; after the lag of reads in any state, or none if there certainly is none.
pub(super) async fn settled_as<K, V>(
    poller: &Poller<K, V>,
    key: &K,
    deadline: Deadline,
    is_expected: impl Fn(&V) -> bool + Send + Sync,
) -> Result<Option<Arc<V>>, WaitError>
where
    K: Clone + Ord + Debug + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    let found = poller.settle_as(key, deadline, is_expected).await;
    found.map(Presence::row)
}
