//! Proof that a resource does not exist. An empty response proves nothing: the cloud returns one without permission to
//! describe the resource, and while its index lags.

use std::fmt::{Debug, Display};
use std::sync::Arc;

use tokio::time::Instant;

use super::evidence::{ConfirmedAbsent, LAG};
use super::{Look, Observation, Poller, WaitError};
use crate::base::Deadline;

/// Ids of an unfiltered page that are kept as witnesses.
const WITNESSES_A_PAGE: usize = 8;
/// How often a witness is looked for in one [`Poller::settle`]: it may be deleted meanwhile.
const ROUNDS: usize = 2;

/// What is known of a resource once reads had time to catch up.
#[derive(Debug)]
pub enum Presence<V> {
    /// Its newest row.
    Row(Arc<V>),
    /// It does not exist.
    Absent(ConfirmedAbsent),
}

impl<V> Presence<V> {
    /// The row, if there is one.
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
    K: Clone + Ord + Debug + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    /// Remembers that the resource does not exist.
    pub fn note_absent(&self, key: &K, _: ConfirmedAbsent) {
        self.forget(key);
        self.deleted.note(key);
    }

    /// The proof of [`Self::note_absent`], without a call.
    #[must_use]
    pub fn known_absent(&self, key: &K) -> Option<ConfirmedAbsent> {
        self.deleted.proof(key)
    }

    /// The row, or the proof that there is none. A row that is present costs one shared describe; absence takes
    /// [`LAG`] and a second one.
    ///
    /// # Errors
    /// [`WaitError::Unproven`] if neither is certain; when the cloud rejects the call, or the deadline passes.
    pub async fn settle(
        &self,
        key: &K,
        deadline: Deadline,
    ) -> std::result::Result<Presence<V>, WaitError> {
        self.settle_as(key, deadline, |_| true).await
    }

    /// The row in an expected state; after [`LAG`] in any state, or the proof that there is none.
    ///
    /// # Errors
    /// As [`Self::settle`].
    pub async fn settle_as(
        &self,
        key: &K,
        deadline: Deadline,
        is_expected: impl Fn(&V) -> bool + Send + Sync,
    ) -> std::result::Result<Presence<V>, WaitError> {
        if let Some(proof) = self.known_absent(key) {
            return Ok(Presence::Absent(proof));
        }
        let began = Instant::now();
        let mut look = self.look(key, deadline).await?;
        if let Look::Row(row) = &look {
            if is_expected(row) {
                return Ok(Presence::Row(Arc::clone(row)));
            }
            let decide = |observation| match observation {
                Observation::Row(row) => {
                    let is_settled = is_expected(&row) || began.elapsed() >= LAG;
                    is_settled.then_some(Look::Row(row))
                }
                Observation::Missing { witnessed } => Some(Look::Missing { witnessed }),
                Observation::Failed(_) => None,
            };
            look = self.until(key, deadline, decide).await?;
        }
        for _ in 0..ROUNDS {
            let Look::Missing { witnessed } = look else {
                break;
            };
            if !witnessed && let Some(proof) = self.prove_absent(key, deadline).await? {
                return Ok(Presence::Absent(proof));
            }
            // Whatever existed when this began is in a response to a request of then.
            let pause = LAG.saturating_sub(began.elapsed());
            if deadline.bound(tokio::time::sleep(pause)).await.is_err() {
                return Err(WaitError::Deadline {
                    last: "an empty response".to_owned(),
                });
            }
            look = self.look(key, deadline).await?;
            if let Look::Missing { witnessed: true } = look {
                return Ok(Presence::Absent(ConfirmedAbsent::after_lag()));
            }
        }
        match look {
            Look::Row(row) => Ok(Presence::Row(row)),
            Look::Missing { .. } => Err(self.unproven()),
        }
    }

    /// Looks for evidence after an empty response: other resources, which later polls describe together with this one,
    /// or else a call that names this one as missing.
    ///
    /// # Errors
    /// When the cloud rejects the call.
    pub async fn prove_absent(
        &self,
        key: &K,
        deadline: Deadline,
    ) -> std::result::Result<Option<ConfirmedAbsent>, WaitError> {
        let is_empty = self.find_witness(key, deadline).await? == Some(false);
        let names = self
            .evidence
            .as_ref()
            .and_then(|evidence| evidence.names.as_ref());
        match names {
            Some(names) if is_empty => Ok(names(key.clone(), deadline).await),
            _ => Ok(None),
        }
    }

    /// Whether an unfiltered page has rows. Other resources on it are described together with this one from now on.
    /// None if the page cannot be read now.
    ///
    /// # Errors
    /// When the cloud rejects the call.
    pub async fn find_witness(
        &self,
        key: &K,
        deadline: Deadline,
    ) -> std::result::Result<Option<bool>, WaitError> {
        let Some(evidence) = &self.evidence else {
            return Ok(None);
        };
        let ids = match (evidence.page)(deadline).await {
            Ok(ids) => ids,
            Err(error) if super::observation::is_transient(&error) => return Ok(None),
            Err(error) => return Err(WaitError::Cloud(Arc::new(error))),
        };
        for id in ids.iter().filter(|id| *id != key).take(WITNESSES_A_PAGE) {
            self.remember(id);
        }
        Ok(Some(!ids.is_empty()))
    }

    /// The error for an absence without proof.
    #[must_use]
    pub fn unproven(&self) -> WaitError {
        let action = self.evidence.as_ref().map(|evidence| evidence.action);
        WaitError::Unproven {
            action: action.unwrap_or("Describe*"),
        }
    }
}
