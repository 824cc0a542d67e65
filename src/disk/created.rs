//! Waiting for a resource whose creation the cloud has accepted.

use tokio::time::Instant;

use super::create_once::{Call, Creator};
use super::owned::Owned;
use super::stale_read::{LAG, StaleReadGuard, UNSEEN};
use crate::base::Deadline;
use crate::cloud::view::{AbsenceGuard, Observation, OperationKind, WaitError};

enum Outcome<T> {
    Decided(T),
    Absent,
    /// It should have been in a response by now, but no response had another resource either.
    Unwitnessed,
}

impl<V: Owned> Creator<V> {
    /// Waits until `decide` accepts a row; none if the resource certainly does not exist any more: it was deleted since,
    /// or its creation failed in the cloud. The name is free again then. Without an operation, the row is expected at
    /// once.
    ///
    /// # Errors
    /// [`WaitError::Unproven`] if at the deadline neither is certain; when the cloud rejects the call, or the deadline
    /// passes.
    pub(super) async fn until_created<T>(
        &self,
        deadline: Deadline,
        call: &mut Call,
        id: &V::Id,
        operation: Option<OperationKind>,
        decide: impl FnMut(&V) -> Option<T>,
    ) -> Result<Option<T>, WaitError> {
        let decided = match self.rows.known_absent(id) {
            // The token still names what was deleted a moment ago, and an old read shows it.
            Some(_) => None,
            None => self.decided(deadline, call, id, operation, decide).await?,
        };
        if decided.is_none() {
            let (name, id) = (&call.name, id.to_string());
            tracing::warn!(
                name,
                id,
                "the {} of this name does not exist any more",
                V::KIND
            );
            self.attempts.forget(&call.key, &id);
            call.past = self.attempts.of(&call.key);
        }
        Ok(decided)
    }

    async fn decided<T>(
        &self,
        deadline: Deadline,
        call: &Call,
        id: &V::Id,
        mut operation: Option<OperationKind>,
        mut decide: impl FnMut(&V) -> Option<T>,
    ) -> Result<Option<T>, WaitError> {
        let (poller, key, text) = (&self.rows, call.key.as_str(), id.to_string());
        let (mut missing, mut absent) = (StaleReadGuard::default(), AbsenceGuard::default());
        let (mut was_shown, mut is_unproven) = (false, false);
        let mut next_proof = Instant::now();
        loop {
            let observe = |observation| match observation {
                Observation::Row(row) => {
                    (was_shown, is_unproven) = (true, false);
                    missing.ends();
                    absent.found();
                    self.attempts.seen(key);
                    decide(&row).map(Outcome::Decided)
                }
                Observation::Missing { witnessed } => {
                    // Certainly overdue in the responses of this call and of those before: one call may end sooner than
                    // its absence is proven. Nothing was read between two calls, so that an early response alone proves
                    // nothing.
                    let first = self.attempts.missed(key, &text);
                    let is_overdue = missing.holds(LAG) && (was_shown || first.elapsed() >= UNSEEN);
                    if absent.missing(witnessed).is_some() && is_overdue {
                        return Some(Outcome::Absent);
                    }
                    is_unproven = !witnessed && is_overdue;
                    let is_due = is_unproven && Instant::now() >= next_proof;
                    is_due.then_some(Outcome::Unwitnessed)
                }
            };
            let waited = match operation.take() {
                Some(operation) => poller.until_done(id, deadline, operation, observe).await,
                None => poller.until(id, deadline, observe).await,
            };
            match waited {
                Ok(Outcome::Decided(decided)) => return Ok(Some(decided)),
                Ok(Outcome::Absent) => return Ok(None),
                Ok(Outcome::Unwitnessed) => {
                    // Later responses have the witness that this may find.
                    if poller.prove_absent(id, deadline).await?.is_some() {
                        return Ok(None);
                    }
                }
                Err(WaitError::Deadline { .. }) if is_unproven => return Err(poller.unproven()),
                Err(error) => return Err(error),
            }
            next_proof = Instant::now() + UNSEEN;
        }
    }
}
