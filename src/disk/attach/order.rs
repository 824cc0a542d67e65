//! When an order to attach or detach a disk may be sent, and sent again after a refusal. No permit is held meanwhile.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::call::Call;
use super::queue::{Operation, Permit};
use super::refusals::{InstanceBackoff, RetryPermit};
use crate::cloud::view::{Observation, WaitError};
use crate::cloud::{self, Condition, Kind};
use crate::disk::error::Error;
use crate::disk::pauses::Pauses;
use crate::disk::{Result, error};
use crate::model::Failure;

/// How long other disks of the instance wait for an operation in progress. A longer one may never complete.
const LONGEST_HOLD: Duration = Duration::from_secs(30);

/// An order of one call, from the first attempt to the last.
#[derive(Debug)]
pub(super) struct Order<'a> {
    call: Call<'a>,
    operation: Operation,
    refusing: Arc<InstanceBackoff>,
    /// Whether the disk is known to be ephemeral: orders say so.
    pub(super) is_ephemeral: bool,
    permit: Option<Permit>,
    turn: Option<RetryPermit>,
    pauses: Pauses,
    /// The last refusal. It explains more than that the deadline has passed.
    refusal: Option<cloud::Error>,
}

impl<'a> Order<'a> {
    pub(super) fn new(call: Call<'a>, operation: Operation) -> Self {
        let attacher = call.attacher;
        Self {
            call,
            operation,
            refusing: attacher.refusals.of(call.node, operation),
            is_ephemeral: attacher.journal.is_ephemeral(call.disk),
            permit: None,
            turn: None,
            pauses: Pauses::default(),
            refusal: None,
        }
    }

    /// # Errors
    /// The last refusal, or [`Error::Queue`], at the deadline.
    pub(super) async fn admit(&mut self) -> Result<()> {
        let call = self.call;
        loop {
            if self.permit.is_none() {
                let permit = call
                    .attacher
                    .permit(call.deadline, call.node, self.operation);
                self.permit = Some(permit.await.map_err(|_| self.too_late())?);
            }
            if self.turn.is_some() || !self.refusing.is_recent() {
                return Ok(());
            }
            // Another disk's order has just been refused, and this one would be as well.
            self.permit = None;
            self.wait_turn().await?;
        }
    }

    /// The order was accepted: the permit is held until the operation is done.
    pub(super) fn accepted(&mut self) {
        self.turn = None;
        if let Some(permit) = &self.permit {
            permit.accepted();
        }
        self.refusing.ready();
    }

    /// Lets other disks of the instance be ordered.
    pub(super) fn release(&mut self) {
        self.turn = None;
        self.permit = None;
    }

    /// Whether a refused order may be sent again without a pause. Either it was refused because of another one of this
    /// process: then the queue says when. Or it lacks `DeleteWithInstance`, and the disk is certainly ephemeral.
    pub(super) async fn may_repeat(&mut self, refusal: &cloud::Error) -> bool {
        match refusal.condition() {
            Condition::NodeOccupied if self.permit.as_ref().is_some_and(Permit::learn_conflict) => {
                self.release();
                true
            }
            Condition::DeleteWithInstanceRequired if !self.is_ephemeral => {
                let journal = &self.call.attacher.journal;
                if let Ok(Observation::Row(row)) = self.call.look().await {
                    journal.note_category(&row);
                }
                self.is_ephemeral = journal.is_ephemeral(self.call.disk);
                self.is_ephemeral
            }
            _ => false,
        }
    }

    pub(super) async fn hold<T>(&mut self, wait: impl Future<Output = T>) -> T {
        self.turn = None;
        let mut wait = pin!(wait);
        if let Ok(done) = tokio::time::timeout(LONGEST_HOLD, &mut wait).await {
            return done;
        }
        self.permit = None;
        let done = wait.await;
        // Orders that the instance has refused meanwhile are worth another attempt.
        self.refusing.ready();
        done
    }

    /// Waits after a refusal until the order is worth another attempt.
    ///
    /// # Errors
    /// The refusal, at the deadline.
    pub(super) async fn back_off(&mut self, refusal: cloud::Error) -> Result<()> {
        if refusal.failure() != Failure::NodeBusy {
            return self.pause(Instant::now(), refusal).await;
        }
        self.release();
        self.refusal = Some(refusal);
        self.refusing.refused();
        self.wait_turn().await
    }

    /// As [`Self::back_off`], for a refusal because of the disk, and with a pause that began at `start`.
    pub(super) async fn pause(&mut self, start: Instant, refusal: cloud::Error) -> Result<()> {
        self.release();
        self.refusal = Some(refusal);
        let pause = tokio::time::sleep_until(start + self.pauses.next());
        let paused = self.call.deadline.bound(pause).await;
        paused.map_err(|_| self.too_late())
    }

    /// The error for an order that is not repeated.
    pub(super) fn failed(&mut self, error: cloud::Error) -> Error {
        if error.kind() == Kind::Deadline && self.refusal.is_some() {
            return self.too_late();
        }
        self.refused(error)
    }

    /// The error for a failed wait after a refusal.
    pub(super) fn not_observed(&mut self, refusal: cloud::Error, error: WaitError) -> Error {
        match error {
            WaitError::Deadline { .. } => self.refused(refusal),
            error => error::wait(self.call.step(self.operation))(error),
        }
    }

    fn refused(&self, refusal: cloud::Error) -> Error {
        error::cloud(self.call.step(self.operation))(refusal)
    }

    /// The error when the deadline has passed.
    fn too_late(&mut self) -> Error {
        if let Some(refusal) = self.refusal.take() {
            return self.refused(refusal);
        }
        let Call { disk, node, .. } = self.call;
        let verb = match self.operation {
            Operation::Attach => "attached to",
            Operation::Detach => "detached from",
        };
        let text = format!(
            "the deadline passed before it was the turn of disk {disk}: other disks were being {verb} node {node} one by one"
        );
        error::refused(Failure::AttachQueueTimeout, text, None)
    }

    async fn wait_turn(&mut self) -> Result<()> {
        let turn = self.refusing.turn(self.call.deadline).await;
        self.turn = Some(turn.map_err(|_| self.too_late())?);
        Ok(())
    }
}
