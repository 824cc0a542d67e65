//! Waiting for a resource whose creation the cloud has accepted.

use super::create_once::{Call, Creator};
use super::owned::Owned;
use super::stale_read::{READ_LAG, StaleReadGuard};
use crate::base::Deadline;
use crate::cloud::view::{Observation, OperationKind, Presence, WaitError};

impl<V: Owned> Creator<V> {
    /// Waits until `decide` accepts a row; none if the resource certainly does not exist any more:
    /// it was deleted since, or its creation failed in the cloud. The name is free again then.
    /// Without an operation, the row is expected at once.
    ///
    /// # Errors
    /// [`WaitError::Unproven`] if at the deadline neither is certain; when the cloud rejects the
    /// call, or the deadline passes.
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
            None => self.decided(deadline, id, operation, decide).await?,
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

    /// Waits until `decide` accepts a row; none if the resource certainly does not exist.
    pub(super) async fn decided<T>(
        &self,
        deadline: Deadline,
        id: &V::Id,
        mut operation: Option<OperationKind>,
        mut decide: impl FnMut(&V) -> Option<T>,
    ) -> Result<Option<T>, WaitError> {
        let (rows, mut unproven) = (&self.rows, None);
        loop {
            // Nothing was read between two calls, so that an early response alone proves nothing.
            let mut missing = StaleReadGuard::default();
            let observe = |observation| match observation {
                Observation::Row(row) => {
                    unproven = None;
                    missing.ends();
                    decide(&row).map(Some)
                }
                Observation::Missing { .. } => missing.holds(READ_LAG).then_some(None),
            };
            let waited = match operation.take() {
                Some(operation) => rows.wait_until_done(id, deadline, operation, observe).await,
                None => rows.wait_until(id, deadline, observe).await,
            };
            let settled = match waited {
                Ok(Some(decided)) => return Ok(Some(decided)),
                Ok(None) => rows.confirm(id, deadline).await,
                Err(error) => Err(error),
            };
            match settled {
                Ok(Presence::Row(_)) => {}
                Ok(Presence::Absent(_)) if V::IS_NAMED => return Ok(None),
                Ok(Presence::Absent(_)) => {
                    unproven = Some(WaitError::Unproven {
                        action: V::DESCRIBE,
                    });
                }
                Err(error @ WaitError::Unproven { .. }) => unproven = Some(error),
                Err(error @ WaitError::Deadline { .. }) => return Err(unproven.unwrap_or(error)),
                Err(error) => return Err(error),
            }
        }
    }
}
