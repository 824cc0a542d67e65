//! When an attach or detach request is sent, and retried after an error. No permit is held during a pause.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::backoff::{InstanceBackoff, RetryPermit};
use super::call::Call;
use super::queue::{Operation, Permit};
use crate::cloud::view::{Observation, WaitError};
use crate::cloud::{self, Condition, Kind};
use crate::disk::backoff::Backoff;
use crate::disk::error::Error;
use crate::disk::{Result, error};
use crate::model::Failure;

/// Maximum time an operation in progress holds its permit. A longer one may never complete.
const MAX_HOLD: Duration = Duration::from_secs(30);

/// The retries of one attach or detach call.
#[derive(Debug)]
pub(super) struct RetryState<'a> {
    call: Call<'a>,
    operation: Operation,
    instance_backoff: Arc<InstanceBackoff>,
    /// Whether the disk is known to be an elastic ephemeral disk, which requires `DeleteWithInstance`.
    pub(super) is_ephemeral: bool,
    permit: Option<Permit>,
    retry_permit: Option<RetryPermit>,
    backoff: Backoff,
    /// The last error, which at the deadline explains more than a timeout.
    rejection: Option<cloud::Error>,
}

impl<'a> RetryState<'a> {
    pub(super) fn new(call: Call<'a>, operation: Operation) -> Self {
        let attacher = call.attacher;
        Self {
            call,
            operation,
            instance_backoff: attacher.backoffs.get(call.node, operation),
            is_ephemeral: attacher.journal.is_ephemeral(call.disk),
            permit: None,
            retry_permit: None,
            backoff: Backoff::default(),
            rejection: None,
        }
    }

    /// Waits until the request can be sent. At the deadline, fails with the last error or `ATTACH_QUEUE_TIMEOUT`.
    pub(super) async fn wait_ready(&mut self) -> Result<()> {
        let call = self.call;
        loop {
            if self.permit.is_none() {
                let permit = call
                    .attacher
                    .permit(call.deadline, call.node, self.operation);
                self.permit = Some(permit.await.map_err(|_| self.deadline_error())?);
            }
            if self.retry_permit.is_some() || !self.instance_backoff.is_recently_rejected() {
                return Ok(());
            }
            // The instance has just rejected the request of another disk, and would reject this one.
            self.permit = None;
            self.wait_retry_permit().await?;
        }
    }

    /// Records that the request was accepted. The permit is held until the operation is complete.
    pub(super) fn record_accepted(&mut self) {
        self.retry_permit = None;
        if let Some(permit) = &self.permit {
            permit.record_accepted();
        }
        self.instance_backoff.reset();
    }

    /// Releases the permits to other disks of the instance.
    pub(super) fn release(&mut self) {
        self.retry_permit = None;
        self.permit = None;
    }

    /// Whether to retry without a pause: the conflict is with another operation of this process, for which the queue waits,
    /// or `DeleteWithInstance` was missing and the disk is certainly ephemeral.
    pub(super) async fn is_immediate(&mut self, rejection: &cloud::Error) -> bool {
        match rejection.condition() {
            Condition::NodeOccupied
                if self.permit.as_ref().is_some_and(Permit::record_conflict) =>
            {
                self.release();
                true
            }
            Condition::DeleteWithInstanceRequired if !self.is_ephemeral => {
                let journal = &self.call.attacher.journal;
                if let Ok(Observation::Row(row)) = self.call.observe().await {
                    journal.record_category(&row);
                }
                self.is_ephemeral = journal.is_ephemeral(self.call.disk);
                self.is_ephemeral
            }
            _ => false,
        }
    }

    /// Awaits the accepted operation, and holds its permit for [`MAX_HOLD`] at most.
    pub(super) async fn complete<T>(&mut self, wait: impl Future<Output = T>) -> T {
        self.retry_permit = None;
        let mut wait = pin!(wait);
        if let Ok(done) = tokio::time::timeout(MAX_HOLD, &mut wait).await {
            return done;
        }
        self.permit = None;
        let done = wait.await;
        // The instance may now accept requests that it rejected meanwhile.
        self.instance_backoff.reset();
        done
    }

    /// Waits after an error until the request should be retried. At the deadline, fails with that error.
    pub(super) async fn back_off(&mut self, rejection: cloud::Error) -> Result<()> {
        if rejection.failure() != Failure::NodeBusy {
            return self.pause(Instant::now(), rejection).await;
        }
        self.release();
        self.rejection = Some(rejection);
        self.instance_backoff.record_rejection();
        self.wait_retry_permit().await
    }

    /// As [`Self::back_off`], for an error because of the disk, with a pause that began at `start`.
    pub(super) async fn pause(&mut self, start: Instant, rejection: cloud::Error) -> Result<()> {
        self.release();
        self.rejection = Some(rejection);
        let pause = tokio::time::sleep_until(start + self.backoff.next_delay());
        let paused = self.call.deadline.bound(pause).await;
        paused.map_err(|_| self.deadline_error())
    }

    /// The error for a request that is not retried.
    pub(super) fn final_error(&mut self, error: cloud::Error) -> Error {
        if error.kind() == Kind::Deadline && self.rejection.is_some() {
            return self.deadline_error();
        }
        self.rejected(error)
    }

    /// The error for a failed wait after an error of the cloud.
    pub(super) fn wait_error(&mut self, rejection: cloud::Error, error: WaitError) -> Error {
        match error {
            WaitError::Deadline { .. } => self.rejected(rejection),
            error => error::wait(self.call.step(self.operation))(error),
        }
    }

    fn rejected(&self, rejection: cloud::Error) -> Error {
        error::cloud(self.call.step(self.operation))(rejection)
    }

    fn deadline_error(&mut self) -> Error {
        if let Some(rejection) = self.rejection.take() {
            return self.rejected(rejection);
        }
        let Call { disk, node, .. } = self.call;
        let verb = match self.operation {
            Operation::Attach => "attached to",
            Operation::Detach => "detached from",
        };
        let text = format!(
            "the deadline passed while disk {disk} was queued: other disks were being {verb} node {node} one by one"
        );
        error::rejected(Failure::AttachQueueTimeout, text, None)
    }

    async fn wait_retry_permit(&mut self) -> Result<()> {
        let turn = self.instance_backoff.acquire(self.call.deadline).await;
        self.retry_permit = Some(turn.map_err(|_| self.deadline_error())?);
        Ok(())
    }
}
