//! Waiting for a resource whose creation the cloud has accepted.

use std::fmt::{Debug, Display};

use tokio::time::Instant;

use super::stale_read::{LAG, NotFoundConfirmation, UNSEEN};
use crate::base::Deadline;
use crate::cloud::view::{Observation, Operation, Poller, WaitError};

enum Outcome<T> {
    Decided(T),
    Absent,
    /// No response had another resource either; whether it should have been in one by now.
    Unwitnessed {
        is_overdue: bool,
    },
}

/// Waits until `decide` accepts a row; none if the resource certainly does not exist any more: it was deleted since, or
/// its creation failed in the cloud. Without an operation, the row is expected at once.
///
/// # Errors
/// [`WaitError::Unproven`] if at the deadline neither is certain; when the cloud rejects the call, or the deadline
/// passes.
pub(super) async fn until_created<K, V, T>(
    poller: &Poller<K, V>,
    id: &K,
    deadline: Deadline,
    mut operation: Option<Operation>,
    mut missing: NotFoundConfirmation<'_>,
    mut decide: impl FnMut(&V) -> Option<T>,
) -> Result<Option<T>, WaitError>
where
    K: Clone + Ord + Debug + Display + Send + Sync + 'static,
    V: Display + Send + Sync + 'static,
{
    let mut next_proof = Instant::now();
    let mut is_unproven = false;
    loop {
        let observe = |observation| match observation {
            Observation::Row(row) => {
                is_unproven = false;
                missing.shown();
                decide(&row).map(Outcome::Decided)
            }
            Observation::Missing { witnessed } => {
                if missing.missed(witnessed).is_some() {
                    return Some(Outcome::Absent);
                }
                let is_overdue = missing.is_overdue();
                is_unproven = !witnessed && is_overdue;
                let is_due = !witnessed && missing.is_late() && Instant::now() >= next_proof;
                is_due.then_some(Outcome::Unwitnessed { is_overdue })
            }
        };
        let waited = match operation.take() {
            Some(operation) => {
                let done = poller.until_done(id, deadline, operation, observe);
                done.await
            }
            None => poller.until(id, deadline, observe).await,
        };
        let pause = match waited {
            Ok(Outcome::Decided(decided)) => return Ok(Some(decided)),
            Ok(Outcome::Absent) => return Ok(None),
            Ok(Outcome::Unwitnessed { is_overdue: false }) => {
                poller.find_witness(id, deadline).await?;
                LAG
            }
            Ok(Outcome::Unwitnessed { is_overdue: true }) => {
                if poller.prove_absent(id, deadline).await?.is_some() {
                    return Ok(None);
                }
                UNSEEN
            }
            Err(WaitError::Deadline { .. }) if is_unproven => return Err(poller.unproven()),
            Err(error) => return Err(error),
        };
        next_proof = Instant::now() + pause;
    }
}
