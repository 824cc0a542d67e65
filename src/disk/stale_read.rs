//! When to believe what descriptions show, or do not show, against what the cloud's answers say. By
//! time and not by looks: looks are shared, and many can fall into one moment.

use std::fmt::{Debug, Display};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::attempts::AttemptHistory;
use crate::base::Deadline;
use crate::cloud::view::{Poller, Seen, WaitError};

/// How old what a description shows may be (eventual consistency). Believing "not there" any sooner
/// would leave something behind that nobody deletes.
pub(super) const LAG: Duration = Duration::from_secs(3);

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

/// The looks after something that the cloud says it made, in this call and in those before it: one
/// call may end sooner than its absence can be believed.
#[derive(Debug)]
pub(super) struct NotFoundConfirmation<'a> {
    trail: &'a AttemptHistory,
    name: &'a str,
    id: &'a str,
    shown: bool,
    doubt: StaleReadGuard,
}

impl<'a> NotFoundConfirmation<'a> {
    /// The looks after the resource of this id that the name has.
    pub(super) fn new(trail: &'a AttemptHistory, name: &'a str, id: &'a str) -> Self {
        Self {
            trail,
            name,
            id,
            shown: false,
            doubt: StaleReadGuard::default(),
        }
    }

    /// A look has shown it.
    pub(super) fn shown(&mut self) {
        self.shown = true;
        self.doubt.ends();
        self.trail.seen(self.name);
    }

    /// A look has not; true once it can be believed that it is gone.
    pub(super) fn missed(&mut self) -> bool {
        let first = self.trail.missed(self.name, self.id);
        // Between two calls nobody looked, so that an early miss alone proves nothing.
        self.doubt.holds(LAG) && (self.shown || first.elapsed() >= UNSEEN)
    }
}

/// The row, or none once that can be believed.
pub(super) async fn settled<K, V>(
    watch: &Poller<K, V>,
    key: &K,
    deadline: Deadline,
) -> Result<Option<Arc<V>>, WaitError>
where
    K: Clone + Ord + Debug + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    settled_as(watch, key, deadline, |_| true).await
}

/// The row that is as the caller was told; another one, or none, once that can be believed.
pub(super) async fn settled_as<K, V>(
    watch: &Poller<K, V>,
    key: &K,
    deadline: Deadline,
    is_as_told: impl Fn(&V) -> bool + Send + Sync,
) -> Result<Option<Arc<V>>, WaitError>
where
    K: Clone + Ord + Debug + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    let row = watch.look(key, deadline).await?.row();
    if row.as_ref().is_some_and(|row| is_as_told(row)) {
        return Ok(row);
    }
    let mut doubt = StaleReadGuard::default();
    let until = |seen| match seen {
        Seen::Row(row) if is_as_told(&row) => Some(Some(row)),
        Seen::Row(row) => doubt.holds(LAG).then_some(Some(row)),
        Seen::Missing { .. } => doubt.holds(LAG).then_some(None),
        Seen::Failed(_) => None,
    };
    watch.until(key, deadline, until).await
}
