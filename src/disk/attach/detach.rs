//! Detaches a disk: calls `DetachDisk` without reading first, reads only after an error, and returns once it is proven
//! that the node does not hold the disk: by a row without the attachment that is not stale, or by an error code. A
//! response without the disk is not a proof: it is also empty if permission is missing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ecs::poll::{Observation, Operation, PollMode, WaitError};
use ecs::{Condition, DetachDisk, Kind};
use tokio::time::Instant;

use super::attachments::Attachments;
use super::read_only::{self, is_read_only};
use super::retry::RetryState;
use super::target::AttachOperation::{Attach, Detach};
use super::target::Target;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::backoff::Backoff;
use crate::disk::error::{rejected, wait};
use crate::disk::stale_read::{READ_LAG, StaleReadGuard};
use crate::model::{Disk, DiskId, DiskStatus, Failure, InstanceId};

#[derive(Debug)]
pub struct Detacher(pub(in crate::disk) Arc<Attachments>);

impl Detacher {
    /// Detaches the disk from the node; succeeds if the node does not hold the disk or the disk does not exist.
    ///
    /// # Errors
    /// If the cloud rejects the request, if the detach is not proven by the deadline, or if the tag that marks the disk
    /// read-only on the node cannot be removed. A retry removes it.
    pub async fn detach(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<()> {
        let target = self.0.target(deadline, disk, node);
        self.detach_target(target).await.map(drop)
    }

    /// Detaches the disk from every node that holds it (CSI: an empty node id).
    pub async fn detach_everywhere(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        loop {
            let (nodes, is_shared) = self.holders(deadline, disk).await?;
            let mut is_proven = !is_shared;
            for node in &nodes {
                is_proven &= self.detach_target(self.0.target(deadline, disk, node)).await?;
            }
            // The disk was attached to this node only, and no other call attaches it meanwhile. Otherwise reads that
            // are not stale are required.
            if is_proven || nodes.is_empty() {
                return Ok(());
            }
        }
    }

    /// The nodes that hold the disk, once proven, and whether it is a multi-attach disk. No nodes if the disk does not
    /// exist. While the disk is attaching, its row does not name the node.
    async fn holders(&self, deadline: Deadline, disk: &DiskId) -> Result<(Vec<InstanceId>, bool)> {
        let step = || format!("detach disk {disk} from every node");
        let mut unheld = StaleReadGuard::default();
        loop {
            let decide = |observation: Observation<Disk>| {
                let Some(row) = observation.row() else {
                    return Some(None);
                };
                use DiskStatus::{Attaching, Detaching, InUse};
                let is_held = matches!(row.status, Attaching | InUse | Detaching);
                if is_held && row.attachments.is_empty() {
                    unheld.reset();
                    return None;
                }
                let nodes: Vec<_> = self.0.holders(&row).cloned().collect();
                let is_proven = !nodes.is_empty() || unheld.confirmed_after(READ_LAG);
                is_proven.then_some(Some((nodes, row.multi_attach)))
            };
            let holders = self.0.disks.wait_until(disk, deadline, PollMode::Change, decide).await;
            if let Some(holders) = holders.map_err(wait(step()))? {
                return Ok(holders);
            }
            let found = self.0.disks.confirm(deadline, disk).await;
            match found.map_err(wait(step()))? {
                None => return Ok((Vec::new(), false)),
                Some(_) => unheld.reset(),
            }
        }
    }

    /// As [`Self::detach`]; also returns whether the node certainly held the disk.
    pub(super) async fn detach_target(&self, target: Target<'_>) -> Result<bool> {
        self.0.journal.published.remove(target.disk, target.node);
        let (row, was_held) = self.detach_disk(target).await?;
        if row.is_some_and(|row| is_read_only(&row, target.node)) {
            // With the tag, the next writer on the node would be treated as a reader.
            read_only::set(&self.0, target, false).await?;
        }
        Ok(was_held)
    }

    /// The row once the node does not hold the disk, `None` if the disk is not visible; and whether the node held it.
    async fn detach_disk(&self, target: Target<'_>) -> Result<(Option<Disk>, bool)> {
        let node = target.node;
        let mut retry = RetryState::new(&self.0, target, Detach);
        let mut hidden = Backoff::default();
        let (mut free, mut was_held) = (StaleReadGuard::default(), false);
        let mut is_ended = false;
        if let Some(since) = self.0.running.since(&target.order(Detach)) {
            let wait = self.wait_detached(target, &mut hidden, since, true);
            let detached = retry.resume(wait).await?;
            if detached.is_some() {
                return Ok((detached, true));
            }
            is_ended = true;
        }
        retry.admit().await?;
        loop {
            retry.wait_ready().await?;
            let (disk, instance) = target.ids();
            let request = DetachDisk {
                disk,
                instance,
                delete_with_instance: retry.is_ephemeral,
            };
            let Err(rejection) = self.0.ecs.detach_disk(target.deadline, &request).await else {
                self.0.journal.attached.record_resolved(target.disk, node);
                self.0.end(target, Attach);
                if std::mem::take(&mut is_ended) {
                    self.0.end(target, Detach);
                }
                was_held = true;
                let detached = self.complete_detach(target, &mut retry, &mut hidden).await?;
                if detached.is_some() {
                    return Ok((detached, true));
                }
                retry.release();
                continue;
            };
            use Condition::{AlreadyDetached, NoSuchDisk, NotAttached};
            let is_not_held = [NoSuchDisk, AlreadyDetached, NotAttached].contains(&rejection.condition());
            let may_take_effect = self.0.journal.attached.may_take_effect(target.disk, node);
            if is_not_held && !may_take_effect {
                retry.release();
                return Ok((self.read_detached(target, &rejection).await?, was_held));
            }
            if retry.is_immediate(&rejection).await {
                continue;
            }
            let is_unclear = [Kind::Conflict, Kind::Ambiguous, Kind::NotFound].contains(&rejection.kind());
            if !is_not_held && !is_unclear {
                return Err(retry.final_error(rejection));
            }
            match self.0.observe(target).await {
                Ok(Observation::Row(row)) if row.is_attached_to(node) => {
                    free.reset();
                    let is_detaching = row.status == DiskStatus::Detaching;
                    was_held |= is_detaching;
                    if rejection.condition() == Condition::NoSuchNode {
                        // Requests are useless; the cloud releases the disk.
                        retry.release();
                        let since = self.0.start(target, Detach);
                        let wait = self.wait_detached(target, &mut hidden, since, false);
                        match retry.resume(wait).await {
                            Ok(None) => {}
                            Err(error) if error.failure() == Failure::DetachStuck => {
                                return Err(target.not_released(rejection));
                            }
                            detached => return Ok((detached?, was_held)),
                        }
                    } else if is_detaching {
                        let detached = self.complete_detach(target, &mut retry, &mut hidden).await?;
                        if detached.is_some() {
                            return Ok((detached, true));
                        }
                    }
                }
                // The disk may be attaching to this node.
                Ok(Observation::Row(row)) if row.status == DiskStatus::Attaching => free.reset(),
                // The error does not mean that the node does not hold the disk: reads must be up to date.
                Ok(Observation::Row(row))
                    if free.confirmed_after(READ_LAG) && shows_detached(&row, node) && !may_take_effect =>
                {
                    self.0.journal.detached.record(target.disk, target.node, None);
                    return Ok((Some(Disk::clone(&row)), was_held));
                }
                // The disk may have been released with the node.
                Ok(Observation::Missing { .. })
                    if rejection.condition() == Condition::NoSuchNode && !may_take_effect =>
                {
                    match self.0.disks.confirm(target.deadline, target.disk).await {
                        Ok(None) => return Ok((None, was_held)),
                        Ok(Some(_)) => {}
                        Err(error @ WaitError::Unproven { .. }) => {
                            let text = format!("cannot {}: {error}", target.step(Detach));
                            return Err(rejected(Failure::AbsenceUnproven, text, rejection));
                        }
                        Err(error) => return Err(retry.wait_error(rejection, error)),
                    }
                }
                Ok(_) => {}
                Err(error) => return Err(retry.wait_error(rejection, error)),
            }
            retry.back_off(rejection).await?;
        }
    }

    /// The row once it agrees with the error code that the node does not hold the disk; `None` if the disk does not
    /// exist.
    async fn read_detached(&self, target: Target<'_>, rejection: &ecs::Error) -> Result<Option<Disk>> {
        self.0.journal.detached.record(target.disk, target.node, None);
        let disks = &self.0.disks;
        let Target { deadline, disk, .. } = target;
        let found = match rejection.condition() {
            Condition::NoSuchDisk => disks.confirm_named_missing(deadline, disk).await,
            // The code states it, and no read with a canary contradicts it.
            _ => disks.find(deadline, disk).await,
        };
        match found.map_err(wait(target.step(Detach)))? {
            None => Ok(None),
            Some(row) if shows_detached(&row, target.node) => Ok(Some(Disk::clone(&row))),
            Some(_) => {
                let since = self.0.start(target, Detach);
                self.wait_detached(target, &mut Backoff::default(), since, false).await
            }
        }
    }

    async fn complete_detach(
        &self,
        target: Target<'_>,
        retry: &mut RetryState<'_>,
        hidden: &mut Backoff,
    ) -> Result<Option<Disk>> {
        let since = self.0.start(target, Detach);
        retry.complete(self.wait_detached(target, hidden, since, false)).await
    }

    /// Waits until a detach that was accepted then is complete. `None` if the request should be sent again: the disk
    /// was invisible for so long that the error code shows more than reads, or an earlier call has waited for the
    /// detach, and it is not running any more.
    async fn wait_detached(
        &self,
        target: Target<'_>,
        hidden: &mut Backoff,
        accepted: Instant,
        is_resumed: bool,
    ) -> Result<Option<Disk>> {
        let Target { deadline, disk, node } = target;
        let (disks, journal) = (&self.0.disks, &self.0.journal);
        self.0.journal.detached.record(target.disk, target.node, None);
        let is_hidden = AtomicBool::new(false);
        let is_new_leader = journal.is_new_leader();
        let decide = |observation: Observation<Disk>| {
            let row = observation.row();
            is_hidden.store(row.is_none(), Ordering::Relaxed);
            let Some(row) = row else {
                return is_resumed.then_some(None);
            };
            // A row older than the attach proves nothing.
            let is_attaching = row.status == DiskStatus::Attaching;
            let is_early = is_attaching || journal.attached.is_stale(&row, node, is_new_leader);
            if shows_detached(&row, node) && (!is_early || accepted.elapsed() >= READ_LAG) {
                return Some(Some(Disk::clone(&row)));
            }
            (is_resumed && row.status != DiskStatus::Detaching).then_some(None)
        };
        let mode = PollMode::Operation(Operation::Detach.into());
        let waited = disks.wait_until_since(disk, deadline, mode, accepted, decide);
        let row = tokio::select! {
            biased;
            row = waited => row,
            () = resend_due(&is_hidden, hidden) => return Ok(None),
        };
        let row = row.map_err(|error| match error {
            WaitError::Deadline { last } | WaitError::Overdue { last, .. } if !is_hidden.load(Ordering::Relaxed) => {
                let (step, seconds) = (target.step(Detach), accepted.elapsed().as_secs());
                let text =
                    format!("cannot {step}: the cloud has been processing it for {seconds} s; last observed: {last}");
                rejected(Failure::DetachStuck, text, None)
            }
            error => wait(target.step(Detach))(error),
        })?;
        if let Some(row) = &row {
            self.0.end(target, Detach);
            journal.attached.remove(disk, node);
            journal.detached.record(disk, node, row.detached);
            journal.record_observed(row);
        }
        Ok(row)
    }
}

async fn resend_due(is_hidden: &AtomicBool, backoff: &mut Backoff) {
    loop {
        tokio::time::sleep(backoff.next_delay()).await;
        if is_hidden.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Whether the row shows that the node does not hold the disk. A row without attachments is incomplete while the disk
/// is detaching, or in use without multi-attach.
fn shows_detached(row: &Disk, node: &InstanceId) -> bool {
    let is_held = match row.status {
        DiskStatus::Detaching => true,
        DiskStatus::InUse => !row.multi_attach,
        _ => false,
    };
    let is_incomplete = is_held && row.attachments.is_empty();
    !(row.is_attached_to(node) || is_incomplete)
}
