//! Attaches a disk: calls `AttachDisk` without reading first, reads only after an error, and returns once the disk is
//! in use on the node.

use std::sync::Arc;
use std::time::Duration;

use ecs::poll::{Observation, Operation, PollMode, WaitError};
use ecs::{AttachDisk, Condition, Kind};
use scopeguard::ScopeGuard;
use tokio::time::Instant;

use super::attachments::Attachments;
use super::explain;
use super::force::{ForceAttach, is_force_unsupported};
use super::queue::QueueReport;
use super::retry::RetryState;
use super::target::AttachOperation::{Attach, Detach};
use super::target::Target;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::error::{Error, wait};
use crate::disk::stale_read::{READ_LAG, StaleReadGuard, VISIBILITY_LAG};
use crate::model::{Disk, DiskId, DiskStatus, Failure, InstanceId};

/// Maximum duration of a force attach, including the read of the disk that it is based on.
const FORCE_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Attacher(pub(in crate::disk) Arc<Attachments>);

impl Attacher {
    /// The attach and detach requests that wait for an instance, for metrics.
    pub fn queues(&self) -> Vec<QueueReport> {
        self.0.queues.report()
    }

    /// Attaches the disk to the node; succeeds if it is already attached there.
    ///
    /// # Errors
    /// [`Error::InUseElsewhere`] if another node holds the disk. At the deadline, the last error of the cloud.
    pub async fn attach(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<Disk> {
        let target = self.0.target(deadline, disk, node);
        let (row, _) = self.attach_target(target).await?;
        Ok(row)
    }

    /// As [`Attacher::attach`]; also returns whether this call certainly attached the disk.
    pub(super) async fn attach_target(&self, target: Target<'_>) -> Result<(Disk, bool)> {
        let mut retry = RetryState::new(&self.0, target, Attach);
        let mut force = ForceAttach::default();
        if let Some(since) = self.0.running.since(&target.order(Attach)) {
            let resumed = retry.resume(self.wait_attached(target, since, true)).await?;
            if let Some(row) = resumed {
                return Ok((row, false));
            }
        }
        if let Err(rejection) = retry.admit().await {
            // An earlier request whose response was lost may have attached it meanwhile.
            return match self.0.observe(target).await {
                Ok(Observation::Row(row)) if self.shows_attached(target, &row) => Ok((Disk::clone(&row), false)),
                Ok(Observation::Row(row)) => Err(self.0.in_use_elsewhere(target, &row).unwrap_or(rejection)),
                _ => Err(rejection),
            };
        }
        loop {
            retry.wait_ready().await?;
            let soon = Target {
                deadline: target.deadline.at_most(FORCE_TIMEOUT),
                ..target
            };
            force.forced = force.may_force(&self.0, soon).await;
            let attempt = if force.forced { soon } else { target };
            let outcome = self.send_attach(attempt, force.forced, retry.is_ephemeral).await;
            let Err(error) = outcome else {
                // The operations for which earlier calls have waited are complete.
                self.0.end(target, Attach);
                self.0.end(target, Detach);
                if let Some(row) = self.complete_attach(target, &mut retry).await? {
                    return Ok((row, true));
                }
                continue;
            };
            if retry.is_immediate(&error).await {
                continue;
            }
            let found = self.handle_error(target, &mut retry, &mut force, error);
            if let Some(row) = found.await? {
                return Ok((row, false));
            }
        }
    }

    /// Calls `AttachDisk`. The journal records the attachment before the call, in case this future is dropped, and
    /// forgets it once the call certainly had no effect.
    async fn send_attach(&self, target: Target<'_>, force: bool, is_ephemeral: bool) -> ecs::Result<()> {
        let journal = &self.0.journal;
        let (disk, instance) = target.ids();
        drop(journal.take_free(&disk));
        // Whatever the response: a pod may write to the disk, so an earlier deletion is not simply sent again.
        self.0.disks.record_used(&disk);
        let is_known = journal.attached.is_recent(&disk, &instance);
        if !is_known {
            journal.attached.record_pending(&disk, &instance);
        }
        let request = AttachDisk {
            disk,
            instance,
            force,
            delete_with_instance: is_ephemeral,
        };
        let on_drop = scopeguard::guard((), |()| {
            journal.attached.record_unresolved(target.disk, target.node);
        });
        let outcome = self.0.ecs.attach_disk(target.deadline, &request).await;
        match &outcome {
            Ok(()) => {
                journal.attached.record_pending(target.disk, target.node);
                journal.attached.record_resolved(target.disk, target.node);
            }
            Err(error) if error.may_have_taken_effect() => return outcome,
            Err(_) if is_known => {}
            Err(_) => journal.attached.remove(target.disk, target.node),
        }
        ScopeGuard::into_inner(on_drop);
        outcome
    }

    /// Returns the row if the disk is attached to the node, and `None` once the request should be retried.
    async fn handle_error(
        &self,
        target: Target<'_>,
        retry: &mut RetryState<'_>,
        force: &mut ForceAttach,
        rejection: ecs::Error,
    ) -> Result<Option<Disk>> {
        let no_force = force.forced && is_force_unsupported(&rejection);
        force.unsupported |= no_force;
        // A force attach has a short timeout: the disk shows its outcome.
        let cut_short = force.forced && !target.deadline.has_passed();
        let (disk, node) = target.ids();
        match rejection.kind() {
            // A node at its attach limit may hold this disk.
            Kind::Conflict | Kind::Ambiguous | Kind::Quota => {}
            _ if no_force => {}
            Kind::Deadline | Kind::Unreachable | Kind::Throttled if cut_short => {}
            Kind::NotFound if rejection.condition() == Condition::NoSuchNode => {
                let why = ", which does not exist in this region";
                return Err(target.cannot_attach(Failure::NoSuchNode, why, Some(rejection)));
            }
            Kind::NotFound => return Err(Error::NoSuchDisk { disk }),
            _ => {
                retry.release();
                let explained = explain::incompatible_error(&self.0, target, rejection).await;
                return Err(explained.unwrap_or_else(|rejection| retry.final_error(rejection)));
            }
        }
        tracing::debug!(
            disk.id = %disk,
            node.id = %node,
            cloud.code = rejection.code(),
            cloud.request_id = rejection.request_id(),
            "AttachDisk failed, reading the disk"
        );
        let row = match self.0.observe(target).await {
            Ok(Observation::Row(row)) => row,
            // A missing row does not prove absence. If the disk does not exist, the next attempt returns that.
            Ok(Observation::Missing { .. }) => {
                return retry.back_off(rejection).await.map(|()| None);
            }
            Err(error) => return Err(retry.wait_error(rejection, error)),
        };
        if self.shows_attached(target, &row) {
            // An attempt whose response was lost may have attached it a moment ago.
            self.0.journal.record_attached(&row, &node);
            return Ok(Some(Disk::clone(&row)));
        }
        if row.is_in_use_on(&node) {
            // The row may be older than the detach of the disk.
            return retry.back_off(rejection).await.map(|()| None);
        }
        if rejection.kind() == Kind::Quota && row.status != DiskStatus::Attaching {
            retry.release();
            return Err(explain::attach_limit_error(&self.0, target, &row, rejection).await);
        }
        if let Some(error) = self.0.in_use_elsewhere(target, &row) {
            return Err(error);
        }
        match &row.status {
            // A multi-attach disk may be attaching to another node, which its row does not name.
            DiskStatus::Attaching if !row.multi_attach => {
                return self.complete_attach(target, retry).await;
            }
            // The instance is not ready, another operation is in progress on the disk, or the row is stale.
            DiskStatus::Available | DiskStatus::InUse => retry.back_off(rejection).await?,
            DiskStatus::Attaching | DiskStatus::Creating | DiskStatus::Detaching | DiskStatus::ReIniting => {
                self.wait_attachable(target, retry, force, &row, rejection).await?;
            }
            DiskStatus::Unknown(_) => return Err(retry.final_error(rejection)),
        }
        Ok(None)
    }

    /// Whether the row shows the disk attached to the node, and is certainly not older than a detach from there.
    fn shows_attached(&self, target: Target<'_>, row: &Disk) -> bool {
        let journal = &self.0.journal;
        let is_ours = journal.attached.is_recent(target.disk, target.node)
            && !journal.attached.may_take_effect(target.disk, target.node);
        self.0.is_attached(target, row) && (is_ours || !journal.is_new_leader())
    }

    async fn complete_attach(&self, target: Target<'_>, retry: &mut RetryState<'_>) -> Result<Option<Disk>> {
        let since = self.0.start(target, Attach);
        retry.complete(self.wait_attached(target, since, false)).await
    }

    /// Waits until the disk, which is in a transitional state, can be attached or force-attached.
    async fn wait_attachable(
        &self,
        target: Target<'_>,
        retry: &mut RetryState<'_>,
        force: &mut ForceAttach,
        row: &Disk,
        rejection: ecs::Error,
    ) -> Result<()> {
        let start = Instant::now();
        // Other disks of the node can proceed.
        retry.release();
        let is_detaching = row.status == DiskStatus::Detaching;
        let stuck = force.observe(&self.0, target, row);
        let stopped = stuck && self.0.are_stopped(target.deadline, &row.attachments).await;
        if stopped && !force.forced {
            force.due = true;
            return Ok(());
        }
        let decide = |observation: Observation<Disk>| {
            let Some(now) = observation.row() else {
                return Some(false);
            };
            if now.status == DiskStatus::Detaching {
                let stopped = stopped && now.attachments == row.attachments;
                let due = force.observe(&self.0, target, &now) && (stopped || force.is_stuck());
                return due.then_some(true);
            }
            matches!(now.status, DiskStatus::Available | DiskStatus::InUse).then_some(false)
        };
        let holder = row.attachments.first().filter(|_| is_detaching);
        let since = match holder {
            Some(node) => self.0.start(Target { node, ..target }, Detach),
            None => self.0.start(target, Attach),
        };
        let disks = &self.0.disks;
        let waited = disks.wait_until_since(target.disk, target.deadline, PollMode::Change, since, decide);
        match (waited.await, holder) {
            (Ok(due), _) => force.due = due,
            (Err(WaitError::Overdue { running, last }), Some(holder)) => {
                let why = format!(
                    ": node {holder} has been releasing it for {} s; last observed: {last}",
                    running.as_secs()
                );
                return Err(target.cannot_attach(Failure::DetachStuck, &why, Some(rejection)));
            }
            (Err(error), _) => return Err(retry.wait_error(rejection, error)),
        }
        if let Some(node) = holder.filter(|_| !force.due) {
            self.0.end(Target { node, ..target }, Detach);
        }
        retry.pause(start, rejection).await
    }

    /// Waits until an attach that was accepted then is complete or has certainly failed. `None` if an earlier call has
    /// waited for it, or for the disk to become attachable, and nothing is in progress any more.
    ///
    /// A row is at most [`READ_LAG`] old. If a read that starts at least that long after acceptance shows the disk
    /// free, and an earlier one showed it attaching, the attach has failed. Without the earlier row, reads must agree
    /// for longer.
    async fn wait_attached(&self, target: Target<'_>, accepted: Instant, is_resumed: bool) -> Result<Option<Disk>> {
        let mut free = StaleReadGuard::default();
        // The end of the previous read, before which the current one did not start.
        let mut last_read: Option<Instant> = None;
        let mut attaching = false;
        let decide = |observation: Observation<Disk>| {
            // A disk that is attaching cannot be deleted: a missing row means that it is not visible.
            let Some(row) = observation.row() else {
                return is_resumed.then_some(Ok(None));
            };
            if self.0.is_attached(target, &row) {
                self.0.journal.record_attached(&row, target.node);
                return Some(Ok(Some(Disk::clone(&row))));
            }
            if let Some(error) = self.0.in_use_elsewhere(target, &row) {
                return Some(Err(error));
            }
            let started = last_read.replace(Instant::now());
            attaching |= row.status == DiskStatus::Attaching;
            let is_transient = matches!(row.status, DiskStatus::Creating | DiskStatus::ReIniting);
            if is_resumed && !attaching && !is_transient {
                return Some(Ok(None));
            }
            if !row.is_free() {
                free.reset();
                return None;
            }
            let after = started.is_some_and(|start| start.duration_since(accepted) >= READ_LAG);
            let is_proven = free.confirmed_after(VISIBILITY_LAG) || attaching && after;
            let why = ": the cloud aborted the attach, and the disk is Available again";
            is_proven.then(|| Err(target.cannot_attach(Failure::AttachFailed, why, None)))
        };
        let (disks, mode) = (&self.0.disks, PollMode::Operation(Operation::Attach.into()));
        let waited = disks.wait_until_since(target.disk, target.deadline, mode, accepted, decide);
        let waited = waited.await.map_err(wait(target.step(Attach)));
        // A wait that fails does not end the operation.
        if waited.is_ok() {
            self.0.end(target, Attach);
        }
        waited?
    }
}
