//! When an attach or detach request is sent, and retried after an error. No permit is held during a pause, and no call
//! waits for an instance that is stalled.

use std::sync::Arc;

use ecs::poll::{Observation, WaitError};
use ecs::{Condition, Kind};
use tokio::time::Instant;

use super::attachments::Attachments;
use super::backoff::{InstanceBackoff, Pending, RetryPermit};
use super::queue::Permit;
use super::target::{AttachOperation, Order, Target};
use crate::base::{Deadline, Elapsed, error_chain};
use crate::disk::backoff::Backoff;
use crate::disk::error::Error;
use crate::disk::refusals::MAX_REPEAT;
use crate::disk::{Result, error};
use crate::model::{Disk, Failure};

#[derive(Debug)]
pub(super) struct RetryState<'a> {
    shared: &'a Attachments,
    target: Target<'a>,
    operation: AttachOperation,
    instance_backoff: Arc<InstanceBackoff>,
    /// Whether the disk is known to be an elastic ephemeral disk, which requires `DeleteWithInstance`.
    pub(super) is_ephemeral: bool,
    permit: Option<Permit>,
    retry_permit: Option<RetryPermit>,
    backoff: Backoff,
    /// When a call with a rejected request ends, so that it does not occupy a worker of the sidecar.
    repeat_until: Deadline,
    /// The last error, which at the deadline explains more than a timeout.
    rejection: Option<ecs::Error>,
}

impl<'a> RetryState<'a> {
    pub(super) fn new(shared: &'a Attachments, target: Target<'a>, operation: AttachOperation) -> Self {
        Self {
            shared,
            target,
            operation,
            instance_backoff: shared.backoffs.get(target.node, operation),
            is_ephemeral: shared.journal.is_ephemeral(target.disk),
            permit: None,
            retry_permit: None,
            backoff: Backoff::default(),
            repeat_until: target.deadline.at_most(MAX_REPEAT),
            rejection: None,
        }
    }

    /// Fails with the last rejection of the same request of an earlier call, if the next request is not due yet.
    pub(super) async fn admit(&self) -> Result<()> {
        let order = self.order();
        let admitted = self.shared.refusals.admit(self.target.deadline, &order);
        admitted.await.map_err(|error| self.rejected(error))
    }

    /// Waits until the request can be sent. At the deadline, or if the instance is stalled, fails with the last error
    /// or `ATTACH_QUEUE_TIMEOUT`.
    pub(super) async fn wait_ready(&mut self) -> Result<()> {
        let (shared, Target { deadline, node, .. }) = (self.shared, self.target);
        loop {
            if self.permit.is_none() {
                let permit = shared.permit(deadline, node, self.operation);
                self.permit = Some(self.unless_stalled(permit).await?);
            }
            if self.retry_permit.is_some() || !self.instance_backoff.is_not_ready() {
                return Ok(());
            }
            // The instance has just rejected the request of another disk, and would reject this one.
            self.permit = None;
            self.wait_retry_permit().await?;
        }
    }

    pub(super) fn release(&mut self) {
        self.retry_permit = None;
        self.permit = None;
    }

    /// Whether to retry without a pause: the conflict is with another operation of this process, for which the queue
    /// waits, or `DeleteWithInstance` was missing and the disk is certainly ephemeral.
    pub(super) async fn is_immediate(&mut self, rejection: &ecs::Error) -> bool {
        match rejection.condition() {
            Condition::NodeOccupied if self.permit.as_ref().is_some_and(Permit::record_conflict) => {
                self.release();
                true
            }
            Condition::DeleteWithInstanceRequired if !self.is_ephemeral => {
                let journal = &self.shared.journal;
                if let Ok(Observation::Row(row)) = self.shared.observe(self.target).await {
                    journal.record_category(&row);
                }
                self.is_ephemeral = journal.is_ephemeral(self.target.disk);
                self.is_ephemeral
            }
            _ => false,
        }
    }

    /// Awaits the end of an accepted operation, with its permit. `None` if it does not run any more.
    pub(super) async fn complete(&mut self, wait: impl Future<Output = Result<Option<Disk>>>) -> Result<Option<Disk>> {
        self.retry_permit = None;
        if let Some(permit) = &self.permit {
            permit.record_accepted();
        }
        self.shared.refusals.record_success(&self.order());
        let Target { disk, node, .. } = self.target;
        let verb = self.verb();
        self.instance_backoff
            .record_accepted(format!("disk {disk} is being {verb} node {node}"));
        self.resume(wait).await
    }

    /// As [`Self::complete`], for an operation that an earlier call has waited for. It has no permit any more.
    pub(super) async fn resume(&mut self, wait: impl Future<Output = Result<Option<Disk>>>) -> Result<Option<Disk>> {
        let done = wait.await;
        match &done {
            Ok(Some(_)) => self.instance_backoff.record_completed(),
            Err(error) if error.failure() == Failure::AttachFailed => {
                self.instance_backoff.record_completed();
            }
            Ok(None) | Err(_) => self.instance_backoff.record_running(),
        }
        done
    }

    /// Waits after an error until the request should be retried. At the deadline, or if the instance is stalled, fails
    /// with that error.
    pub(super) async fn back_off(&mut self, rejection: ecs::Error) -> Result<()> {
        if Failure::from(&rejection) != Failure::NodeBusy {
            let (order, refusals) = (self.order(), &self.shared.refusals);
            refusals.record_refusal(&order, &rejection);
            self.pause(Instant::now(), rejection).await?;
            let due = refusals.wait_due(self.repeat_until, &order).await;
            return due.map_err(|error| self.rejected(error));
        }
        self.release();
        let (failure, reason) = (Failure::from(&rejection), error_chain(&rejection));
        self.rejection = Some(rejection);
        self.instance_backoff.record_rejection(failure, reason);
        self.wait_retry_permit().await
    }

    /// As [`Self::back_off`], for an error because of the disk, with a pause that began at `start`.
    pub(super) async fn pause(&mut self, start: Instant, rejection: ecs::Error) -> Result<()> {
        self.release();
        self.rejection = Some(rejection);
        let pause = tokio::time::sleep_until(start + self.backoff.next_delay());
        let paused = self.repeat_until.bound(pause).await;
        paused.map_err(|_| self.deadline_error())
    }

    pub(super) fn final_error(&mut self, error: ecs::Error) -> Error {
        if error.kind() == Kind::Deadline && self.rejection.is_some() {
            return self.deadline_error();
        }
        self.rejected(error)
    }

    /// The error for a failed wait after an error of the cloud.
    pub(super) fn wait_error(&mut self, rejection: ecs::Error, error: WaitError) -> Error {
        match error {
            // NotFound would be final, but no read has confirmed it.
            WaitError::Deadline { .. } | WaitError::Overdue { .. } if rejection.kind() != Kind::NotFound => {
                self.rejected(rejection)
            }
            error => error::wait(self.target.step(self.operation))(error),
        }
    }

    fn rejected(&self, rejection: ecs::Error) -> Error {
        // A NotFound code for another resource must not be mistaken for a missing volume.
        if self.operation == AttachOperation::Detach && rejection.kind() == Kind::NotFound {
            return self.target.not_released(rejection);
        }
        error::cloud(self.target.step(self.operation))(rejection)
    }

    fn deadline_error(&mut self) -> Error {
        let Target { disk, node, .. } = self.target;
        let verb = self.verb();
        let text = format!(
            "the deadline passed while disk {disk} was queued: other disks were being {verb} node {node} one by one"
        );
        self.last_rejection_or(Failure::AttachQueueTimeout, text)
    }

    fn stalled_error(&mut self, pending: &Pending) -> Error {
        let Target { disk, node, .. } = self.target;
        let verb = self.verb();
        let (seconds, reason) = (pending.since.elapsed().as_secs(), &pending.reason);
        let text = format!(
            "disk {disk} is not queued: no disk was {verb} node {node} for {seconds} s; last observed: {reason}"
        );
        self.last_rejection_or(pending.failure, text)
    }

    fn last_rejection_or(&mut self, failure: Failure, text: String) -> Error {
        match self.rejection.take() {
            Some(rejection) => self.rejected(rejection),
            None => error::rejected(failure, text, None),
        }
    }

    fn order(&self) -> Order {
        self.target.order(self.operation)
    }

    fn verb(&self) -> &'static str {
        match self.operation {
            AttachOperation::Attach => "attached to",
            AttachOperation::Detach => "detached from",
        }
    }

    async fn wait_retry_permit(&mut self) -> Result<()> {
        let instance = Arc::clone(&self.instance_backoff);
        let permit = instance.acquire(self.target.deadline);
        self.retry_permit = Some(self.unless_stalled(permit).await?);
        Ok(())
    }

    /// Awaits a permit, unless the instance is stalled and the permit is not available immediately.
    async fn unless_stalled<T>(&mut self, ready: impl Future<Output = std::result::Result<T, Elapsed>>) -> Result<T> {
        let instance = Arc::clone(&self.instance_backoff);
        tokio::select! {
            biased;
            ready = ready => ready.map_err(|_| self.deadline_error()),
            pending = instance.stalled() => Err(self.stalled_error(&pending)),
        }
    }
}
