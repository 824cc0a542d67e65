//! Proof that a resource does not exist. An empty response proves nothing: the cloud returns one without permission to
//! describe the resource, and while its index lags.

use std::fmt::Display;
use std::sync::Arc;

use tokio::time::{Instant, sleep};

use super::evidence::{ConfirmedAbsent, READ_LAG};
use super::observation::is_transient;
use super::waiter::PollMode;
use super::{Observation, Poller, WaitError};
use crate::base::Deadline;

type Result<T> = std::result::Result<T, WaitError>;

/// Ids of an unfiltered page that are kept as witnesses.
const WITNESSES_A_PAGE: usize = 8;
/// Searches for a witness in one [`Poller::confirm`]: a witness may be deleted meanwhile.
const ROUNDS: usize = 2;

/// Whether a resource exists, once reads had time to catch up.
#[derive(Debug)]
pub enum Presence<V> {
    Row(Arc<V>),
    Absent(ConfirmedAbsent),
}

impl<V> Presence<V> {
    #[must_use]
    pub fn row(self) -> Option<Arc<V>> {
        match self {
            Self::Row(row) => Some(row),
            Self::Absent(_) => None,
        }
    }
}

impl<K, V> Poller<K, V>
where
    K: Clone + Ord + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    /// Records that the resource does not exist.
    pub fn record_absent(&self, id: &K, _: ConfirmedAbsent) {
        let mut state = self.shared.lock();
        state.witnesses.remove(id);
        state.absent.insert(id);
    }

    /// The proof of [`Self::record_absent`], without a call.
    #[must_use]
    pub fn known_absent(&self, id: &K) -> Option<ConfirmedAbsent> {
        ConfirmedAbsent::recorded(&self.shared.lock().absent, id)
    }

    /// The row, or the proof that none exists. A row that is present costs one shared describe call; absence takes
    /// [`READ_LAG`] and a second one.
    ///
    /// # Errors
    /// [`WaitError::Unproven`] if neither is certain; when the cloud rejects the call, or the deadline passes.
    pub async fn confirm(&self, id: &K, deadline: Deadline) -> Result<Presence<V>> {
        self.confirm_state(id, deadline, |_| true).await
    }

    /// The row in an expected state; after [`READ_LAG`] in any state, or the proof that none exists.
    ///
    /// # Errors
    /// As [`Self::confirm`].
    pub async fn confirm_state(
        &self,
        id: &K,
        deadline: Deadline,
        is_expected: impl Fn(&V) -> bool + Send + Sync,
    ) -> Result<Presence<V>> {
        if let Some(proof) = self.known_absent(id) {
            return Ok(Presence::Absent(proof));
        }
        let began = Instant::now();
        let decide = |observation| match observation {
            Observation::Row(row) if !is_expected(&row) && began.elapsed() < READ_LAG => None,
            observation => Some(observation),
        };
        for round in 0..=ROUNDS {
            // A resource that existed when this began is in a response to a request of READ_LAG later.
            let age = began.elapsed();
            let observed = self.wait(id, deadline, PollMode::Current, decide).await?;
            let last = observed.to_string();
            let witnessed = match observed {
                Observation::Row(row) => return Ok(Presence::Row(row)),
                Observation::Missing { witnessed } => witnessed,
            };
            let proof = match &self.shared.source.find_missing {
                // Rows may lag for longer, or be hidden from this account, even if a response has other rows.
                Some(find_missing) if age >= READ_LAG => find_missing(id.clone(), deadline).await,
                Some(_) => None,
                None => ConfirmedAbsent::from_reads(age, witnessed),
            };
            if let Some(proof) = proof {
                return Ok(Presence::Absent(proof));
            }
            if round < ROUNDS {
                if !witnessed && self.shared.source.find_missing.is_none() {
                    self.find_witness(id, deadline).await?;
                }
                let pause = sleep(READ_LAG.saturating_sub(began.elapsed()));
                let paused = deadline.bound(pause).await;
                paused.map_err(|_| WaitError::Deadline { last })?;
            }
        }
        let action = self.shared.source.action;
        Err(WaitError::Unproven { action })
    }

    /// Records resources of an unfiltered page, which are then described together with this one.
    ///
    /// # Errors
    /// When the cloud rejects the call.
    async fn find_witness(&self, id: &K, deadline: Deadline) -> Result<()> {
        let source = &self.shared.source;
        let rows = match (source.page)(None, deadline).await {
            Ok(page) => page.rows,
            Err(error) if is_transient(&error) => return Ok(()),
            Err(error) => return Err(WaitError::Cloud(Arc::new(error))),
        };
        let ids = rows.iter().map(source.id);
        let others = ids.filter(|other| other != id).take(WITNESSES_A_PAGE);
        let mut state = self.shared.lock();
        others.for_each(|other| state.witnesses.insert(&other));
        Ok(())
    }
}
