//! When an order to attach or detach a disk may be sent, and sent again after a refusal. No permit is held meanwhile.

use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;

use super::Attacher;
use super::queue::{Operation, Permit};
use super::refusals::RetryTurn;
use crate::base::{Deadline, Elapsed};
use crate::cloud::view::WaitError;
use crate::cloud::{self, Condition, Kind};
use crate::disk::error::Error;
use crate::disk::pauses::Pauses;
use crate::disk::{Result, error};
use crate::model::{DiskId, Failure, InstanceId};

/// How long other disks of the instance wait for an operation under way. One that takes longer may never end.
const LONGEST_HOLD: Duration = Duration::from_secs(30);

/// An order of one call, from the first attempt to the last.
#[derive(Debug)]
pub(super) struct Order<'a> {
    attacher: &'a Attacher,
    operation: Operation,
    pub(super) deadline: Deadline,
    pub(super) disk: &'a DiskId,
    pub(super) node: &'a InstanceId,
    permit: Option<Permit>,
    turn: Option<RetryTurn>,
    pauses: Pauses,
    /// The last refusal. It explains more than that the deadline has passed.
    refusal: Option<cloud::Error>,
}

impl<'a> Order<'a> {
    pub(super) fn new(
        attacher: &'a Attacher,
        operation: Operation,
        deadline: Deadline,
        disk: &'a DiskId,
        node: &'a InstanceId,
    ) -> Self {
        Self {
            attacher,
            operation,
            deadline,
            disk,
            node,
            permit: None,
            turn: None,
            pauses: Pauses::default(),
            refusal: None,
        }
    }

    /// Waits until the order may be sent.
    ///
    /// # Errors
    /// The last refusal, or [`Error::Queue`], at the deadline.
    pub(super) async fn admit(&mut self) -> Result<()> {
        loop {
            if self.permit.is_none() {
                let (deadline, node) = (self.deadline, self.node);
                let permit = self.attacher.permit(deadline, node, self.operation).await;
                self.permit = Some(permit.map_err(|_| self.too_late())?);
            }
            let refusals = &self.attacher.refusals;
            if self.turn.is_some() || !refusals.is_recent(self.node, self.operation) {
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
        self.attacher.refusals.ready(self.node, self.operation);
    }

    /// Lets other disks of the instance be ordered.
    pub(super) fn release(&mut self) {
        self.turn = None;
        self.permit = None;
    }

    /// Whether the order was refused because of another one of this process: then the queue says when to repeat it.
    pub(super) fn yields(&mut self, refusal: &cloud::Error) -> bool {
        let learn = || self.permit.as_ref().is_some_and(Permit::learn_conflict);
        let yields = refusal.condition() == Condition::NodeOccupied && learn();
        if yields {
            self.release();
        }
        yields
    }

    /// Waits for the end of the operation under way.
    pub(super) async fn hold<T>(&mut self, wait: impl Future<Output = T>) -> T {
        self.turn = None;
        let mut wait = pin!(wait);
        if let Ok(done) = tokio::time::timeout(LONGEST_HOLD, &mut wait).await {
            return done;
        }
        self.permit = None;
        let done = wait.await;
        // Orders that the instance has refused meanwhile are worth another attempt.
        self.attacher.refusals.ready(self.node, self.operation);
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
        self.attacher.refusals.refused(self.node, self.operation);
        self.wait_turn().await
    }

    /// As [`Self::back_off`], for a refusal because of the disk, and with a pause that began at `start`.
    pub(super) async fn pause(&mut self, start: Instant, refusal: cloud::Error) -> Result<()> {
        self.release();
        self.refusal = Some(refusal);
        let pause = tokio::time::sleep_until(start + self.pauses.next());
        let paused = self.deadline.bound(pause).await;
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
            WaitError::Cloud(_) | WaitError::Unproven { .. } => error::wait(self.step())(error),
        }
    }

    fn refused(&self, refusal: cloud::Error) -> Error {
        error::cloud(self.step())(refusal)
    }

    /// The error when the deadline has passed.
    fn too_late(&mut self) -> Error {
        let (disk, node) = (self.disk, self.node);
        match self.refusal.take() {
            Some(refusal) => self.refused(refusal),
            None => Error::Queue {
                disk: disk.clone(),
                verb: match self.operation {
                    Operation::Attach => "attached to",
                    Operation::Detach => "detached from",
                },
                node: node.clone(),
            },
        }
    }

    /// What is ordered, in words.
    pub(super) fn step(&self) -> String {
        let Self { disk, node, .. } = self;
        match self.operation {
            Operation::Attach => format!("attach disk {disk} to node {node}"),
            Operation::Detach => format!("detach disk {disk} from node {node}"),
        }
    }

    async fn wait_turn(&mut self) -> Result<()> {
        let refusals = &self.attacher.refusals;
        let turn: std::result::Result<RetryTurn, Elapsed> = refusals
            .turn(self.node, self.operation, self.deadline)
            .await;
        self.turn = Some(turn.map_err(|_| self.too_late())?);
        Ok(())
    }
}
