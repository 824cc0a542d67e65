//! Waits for a resource whose create request the cloud has accepted.

use super::create_once::{CreateCall, Creator};
use super::owned::OwnedResource;
use super::stale_read::{READ_LAG, StaleReadGuard};
use crate::base::Deadline;
use crate::cloud::view::{Observation, OperationKind, Presence, WaitError};

impl<V: OwnedResource> Creator<V> {
    /// Waits until `decide` returns a value for a row. `None` if the resource certainly no longer exists, because it was
    /// deleted or its creation failed: then the name is free again. Without an operation, the row is expected at once.
    /// Fails with [`WaitError::Unproven`] if neither is certain at the deadline.
    pub(super) async fn wait_created<T>(
        &self,
        deadline: Deadline,
        call: &mut CreateCall,
        id: &V::Id,
        operation: Option<OperationKind>,
        decide: impl FnMut(&V) -> Option<T>,
    ) -> Result<Option<T>, WaitError> {
        let decided = match self.rows.known_absent(id) {
            // The token still returns the deleted resource, and stale reads show it.
            Some(_) => None,
            None => self.wait_decided(deadline, id, operation, decide).await?,
        };
        if decided.is_none() {
            let (name, id) = (&call.name, id.to_string());
            tracing::warn!(name, id, "the {} of this name no longer exists", V::KIND);
            self.attempts.forget(&call.key, &id);
            call.prior = self.attempts.get(&call.key);
        }
        Ok(decided)
    }

    /// Waits until `decide` returns a value for a row; `None` if the resource certainly does not exist.
    pub(super) async fn wait_decided<T>(
        &self,
        deadline: Deadline,
        id: &V::Id,
        mut operation: Option<OperationKind>,
        mut decide: impl FnMut(&V) -> Option<T>,
    ) -> Result<Option<T>, WaitError> {
        let (rows, mut unproven) = (&self.rows, None);
        loop {
            // Reset for each wait, because nothing is read between two waits.
            let mut missing = StaleReadGuard::default();
            let observe = |observation| match observation {
                Observation::Row(row) => {
                    unproven = None;
                    missing.reset();
                    decide(&row).map(Some)
                }
                Observation::Missing { .. } => missing.confirmed_after(READ_LAG).then_some(None),
            };
            let waited = match operation.take() {
                Some(operation) => rows.wait_until_done(id, deadline, operation, observe).await,
                None => rows.wait_until(id, deadline, observe).await,
            };
            let confirmed = match waited {
                Ok(Some(decided)) => return Ok(Some(decided)),
                Ok(None) => rows.confirm(id, deadline).await,
                Err(error) => Err(error),
            };
            match confirmed {
                Ok(Presence::Row(_)) => {}
                Ok(Presence::Absent(_)) if V::ABSENCE_IS_PROVABLE => return Ok(None),
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
