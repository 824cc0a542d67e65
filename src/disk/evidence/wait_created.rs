//! Waits for a resource whose create request the cloud has accepted, or that has the tags of the name.

use ecs::poll::{Observation, OperationKind, WaitError};

use super::{CreateCall, Creator, Rows};
use crate::base::Deadline;
use crate::disk::owned::OwnedResource;

impl<V: OwnedResource> Creator<V> {
    /// Waits until `decide` returns a value for a row that counts (rule 2 of the module). `None` if the resource
    /// certainly no longer exists: then the name is free again. Without an operation, the row is expected at once.
    ///
    /// # Errors
    /// [`WaitError::Unproven`] at the deadline if the last response lacks the resource.
    pub(in crate::disk) async fn wait_created<T>(
        &self,
        deadline: Deadline,
        call: &CreateCall,
        id: &V::Id,
        operation: Option<OperationKind>,
        decide: impl FnMut(&V) -> Option<T> + Send,
    ) -> Result<Option<T>, WaitError> {
        let decided = self.rows.wait_decided(deadline, id, operation, decide).await?;
        if decided.is_none() {
            let (name, id_text) = (&call.name, id.to_string());
            tracing::warn!(name, id = id_text, "the {} of this name no longer exists", V::KIND);
            self.forget(call, id);
        }
        Ok(decided)
    }
}

impl<V: OwnedResource> Rows<V> {
    /// Waits until `decide` returns a value for a row that counts; `None` if the resource certainly does not exist.
    pub(in crate::disk) async fn wait_decided<T>(
        &self,
        deadline: Deadline,
        id: &V::Id,
        operation: Option<OperationKind>,
        mut decide: impl FnMut(&V) -> Option<T> + Send,
    ) -> Result<Option<T>, WaitError> {
        // The token still returns the deleted resource, and stale reads show it.
        if self.is_absent(id) {
            return Ok(None);
        }
        let is_early = self.active.is_new();
        if !self.may_be_hidden(id) && !self.has_canary() {
            // Only with a canary, the absence of a resource that was not accepted just now is proven.
            let observation = self.observe(id, deadline).await?;
            if matches!(observation, Observation::Missing { canary: false }) {
                self.has_or_finds_canary(deadline).await;
            }
        }
        let mut missing = None;
        let mut observe = |observation| {
            missing = match &observation {
                Observation::Row(_) => None,
                Observation::Missing { canary } => Some(*canary),
            };
            let record = self.record_observation(id, &observation);
            match observation.row() {
                Some(row) => {
                    let is_certain = !is_early || self.is_created_by(id, &row);
                    decide(&row).map(|decided| Some((decided, is_certain)))
                }
                None => record.is_absent().then_some(None),
            }
        };
        let waited = match operation {
            Some(operation) => self.wait_until_done(id, deadline, operation, &mut observe).await,
            None => self.observe_until(id, deadline, &mut observe).await,
        };
        let waited = match waited {
            Ok(Some((_, false))) => match self.active.settle(deadline).await {
                Ok(()) => self.observe_until(id, deadline, &mut observe).await,
                Err(_) => Err(WaitError::Deadline {
                    last: "a row that may be older than this process".to_owned(),
                }),
            },
            waited => waited,
        };
        match (waited, missing) {
            (Err(WaitError::Deadline { .. } | WaitError::Overdue { .. }), Some(canary)) => {
                Err(self.unproven(id, canary))
            }
            (waited, _) => waited.map(|decided| decided.map(|(decided, _)| decided)),
        }
    }
}
