//! Detaching: order first, read only after a refusal, return when it is proven that the node does not hold the disk. Proof
//! is a row without the attachment that is not from before it, or a code of the cloud that says so. Absence of the disk
//! from a response is none: the response is empty also for lack of permission.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use super::Attacher;
use super::order::Order;
use super::queue::Operation;
use crate::base::Deadline;
use crate::cloud::view::{self, Observation, WaitError};
use crate::cloud::{Condition, DetachDisk, Kind};
use crate::disk::Result;
use crate::disk::error::{Error, wait};
use crate::disk::pauses::Pauses;
use crate::disk::stale_read::{LAG, StaleReadGuard};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

/// A disk that the node does not hold.
#[derive(Debug)]
pub(super) struct Detached {
    /// The row at that time; none if the disk is not visible.
    row: Option<Disk>,
    /// Whether the node certainly held it until then.
    pub(super) was_held: bool,
}

impl Attacher {
    /// Detaches the disk from the node. A disk that the node does not hold, or that does not exist, is success; an
    /// attachment to another node is left alone.
    ///
    /// # Errors
    /// When the cloud refuses for good, or it is not proven by the deadline that the disk is detached; also when it is,
    /// and the tag that marks it read-only on the node cannot be removed. A repeated call removes it.
    pub async fn detach(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<()> {
        self.detach_tracked(deadline, disk, node).await.map(|_| ())
    }

    /// As [`Attacher::detach`], and says whether the node held the disk.
    pub(super) async fn detach_tracked(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Detached> {
        let detached = self.order_detach(deadline, disk, node).await?;
        if let Some(row) = &detached.row {
            self.clear_read_only(deadline, row, node).await?;
        }
        Ok(detached)
    }

    async fn order_detach(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Detached> {
        let mut order = Order::new(self, Operation::Detach, deadline, disk, node);
        let mut hidden = Pauses::default();
        let (mut free, mut was_held) = (StaleReadGuard::default(), false);
        let mut request = DetachDisk {
            disk: disk.clone(),
            instance: node.clone(),
            delete_with_instance: self.journal.ephemeral.contains(disk),
        };
        loop {
            order.admit().await?;
            let Err(refusal) = self.ecs.detach_disk(deadline, &request).await else {
                order.accepted();
                was_held = true;
                let detached = self.wait_detached(deadline, disk, node, &mut hidden);
                if let Some(row) = order.hold(detached).await? {
                    let row = Some(row);
                    return Ok(Detached { row, was_held });
                }
                order.release();
                continue;
            };
            let not_held = [
                Condition::NoSuchDisk,
                Condition::AlreadyDetached,
                Condition::NotAttached,
            ];
            if not_held.contains(&refusal.condition()) {
                order.release();
                let row = self.read_detached(deadline, disk, node).await?;
                return Ok(Detached { row, was_held });
            }
            if order.yields(&refusal) {
                continue;
            }
            if !request.delete_with_instance && self.is_ephemeral(deadline, disk, &refusal).await {
                request.delete_with_instance = true;
                continue;
            }
            let is_unclear = [Kind::Conflict, Kind::Ambiguous, Kind::NotFound];
            if !is_unclear.contains(&refusal.kind()) {
                return Err(order.failed(refusal));
            }
            match self.disks.look(disk, deadline).await {
                Ok(Observation::Row(row)) if row.is_attached_to(node) => {
                    free.ends();
                    if row.status == DiskStatus::Detaching {
                        was_held = true;
                        let detached = self.wait_detached(deadline, disk, node, &mut hidden);
                        if let Some(row) = order.hold(detached).await? {
                            let row = Some(row);
                            return Ok(Detached { row, was_held });
                        }
                    }
                }
                // It may be attaching to this very node.
                Ok(Observation::Row(row)) if row.status == DiskStatus::Attaching => free.ends(),
                // The refusal does not say that the node does not hold the disk: reads must have caught up.
                Ok(Observation::Row(row)) if free.holds(LAG) && shows_detached(&row, node) => {
                    self.journal.detached.note(disk, node, None);
                    let row = Some(Disk::clone(&row));
                    return Ok(Detached { row, was_held });
                }
                Ok(_) => {}
                Err(error) => return Err(order.not_observed(refusal, error)),
            }
            order.back_off(refusal).await.map_err(|error| {
                // A code for what does not exist must not pass for the volume's absence.
                let Error::Cloud { source, .. } = &error else {
                    return error;
                };
                match source.kind() {
                    Kind::NotFound => still_detaching(disk, node, source.to_string()),
                    _ => error,
                }
            })?;
        }
    }

    /// The row once it agrees with the cloud's code that the node does not hold the disk; none if it is not visible.
    async fn read_detached(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Option<Disk>> {
        self.journal.detached.note(disk, node, None);
        match self.disks.look(disk, deadline).await {
            Ok(Observation::Missing { .. }) => Ok(None),
            Ok(Observation::Row(row)) if shows_detached(&row, node) => Ok(Some(Disk::clone(&row))),
            Ok(Observation::Row(_)) => {
                let mut hidden = Pauses::default();
                self.wait_detached(deadline, disk, node, &mut hidden).await
            }
            Err(error) => Err(wait(format!("detach disk {disk} from node {node}"))(error)),
        }
    }

    /// Waits until the disk is detached. None when it has not been visible for so long that another order should be sent
    /// to learn the state from its code.
    async fn wait_detached(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
        hidden: &mut Pauses,
    ) -> Result<Option<Disk>> {
        self.journal.detached.note(disk, node, None);
        let (began, is_hidden) = (Instant::now(), AtomicBool::new(false));
        let decide = |observation: Observation<Disk>| match observation {
            Observation::Row(row) => {
                is_hidden.store(false, Ordering::Relaxed);
                // A row from before the disk was attached shows nothing.
                let early = row.status == DiskStatus::Attaching
                    || self.journal.attached.is_before(&row, node);
                let proven = shows_detached(&row, node) && (!early || began.elapsed() >= LAG);
                proven.then(|| Disk::clone(&row))
            }
            Observation::Missing { .. } => {
                is_hidden.store(true, Ordering::Relaxed);
                None
            }
        };
        let operation = view::Operation::Detach;
        let row = tokio::select! {
            biased;
            row = self.disks.until_done(disk, deadline, operation, decide) => row,
            () = reorder_due(&is_hidden, hidden) => return Ok(None),
        };
        let row = row.map_err(|error| match error {
            WaitError::Deadline { last } => still_detaching(disk, node, last),
            WaitError::Cloud(_) | WaitError::Unproven { .. } => {
                wait(format!("detach disk {disk} from node {node}"))(error)
            }
        })?;
        self.journal.attached.forget(disk, node);
        self.journal.detached.note(disk, node, row.detached);
        self.journal.observe(&row);
        Ok(Some(row))
    }
}

async fn reorder_due(is_hidden: &AtomicBool, pauses: &mut Pauses) {
    loop {
        tokio::time::sleep(pauses.next()).await;
        if is_hidden.load(Ordering::Relaxed) {
            return;
        }
    }
}

/// Whether the row shows that the node does not hold the disk. A row without any node is incomplete while the disk is
/// being detached, or is in use and only one node can hold it.
fn shows_detached(row: &Disk, node: &InstanceId) -> bool {
    let is_held = match row.status {
        DiskStatus::Detaching => true,
        DiskStatus::InUse => !row.multi_attach,
        _ => false,
    };
    let is_incomplete = is_held && row.attachments.is_empty();
    !(row.is_attached_to(node) || is_incomplete)
}

fn still_detaching(disk: &DiskId, node: &InstanceId, last: String) -> Error {
    Error::StillDetaching {
        disk: disk.clone(),
        node: node.clone(),
        last,
    }
}
