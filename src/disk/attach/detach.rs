//! Detaching: order first, read only after a refusal, return when it is proven that the node does not hold the disk. Proof
//! is a row without the attachment that is not from before it, or a code of the cloud that says so. Absence of the disk
//! from a response is none: the response is empty also for lack of permission.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::time::Instant;

use super::Attacher;
use super::call::Call;
use super::order::Order;
use super::publish::is_read_only;
use super::queue::Operation;
use crate::base::Deadline;
use crate::cloud::view::{self, Observation, Presence, WaitError};
use crate::cloud::{Condition, DetachDisk, Kind};
use crate::disk::Result;
use crate::disk::error::{Error, refused, wait};
use crate::disk::pauses::Pauses;
use crate::disk::stale_read::{READ_LAG, StaleReadGuard};
use crate::model::{Disk, DiskId, DiskStatus, Failure, InstanceId};

impl Attacher {
    /// Detaches the disk from the node. A disk that the node does not hold, or that does not exist, is success; an
    /// attachment to another node is left alone.
    ///
    /// # Errors
    /// When the cloud refuses for good, or it is not proven by the deadline that the disk is detached; also when it is,
    /// and the tag that marks it read-only on the node cannot be removed. A repeated call removes it.
    pub async fn detach(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<()> {
        self.call(deadline, disk, node).detach().await.map(|_| ())
    }

    /// Detaches the disk from every node that holds it (CSI: an empty node id).
    pub async fn detach_everywhere(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        loop {
            let (nodes, is_shared) = self.holders(deadline, disk).await?;
            let mut is_proven = !is_shared;
            for node in &nodes {
                is_proven &= self.call(deadline, disk, node).detach().await?;
            }
            // The disk was attached to this node only, which has detached it, and no other call attaches it meanwhile. Otherwise
            // reads that are not stale are required.
            if is_proven || nodes.is_empty() {
                return Ok(());
            }
        }
    }

    /// The nodes to which the disk is attached, once that is proven or the disk does not exist; and whether several can attach
    /// it. While the disk is attaching, no row names the node.
    async fn holders(&self, deadline: Deadline, disk: &DiskId) -> Result<(Vec<InstanceId>, bool)> {
        let step = || format!("detach disk {disk} from every node");
        let mut nobody = StaleReadGuard::default();
        loop {
            let decide = |observation: Observation<Disk>| {
                let Some(row) = observation.row() else {
                    return Some(None);
                };
                use DiskStatus::{Attaching, Detaching, InUse};
                let is_held = matches!(row.status, Attaching | InUse | Detaching);
                if is_held && row.attachments.is_empty() {
                    nobody.ends();
                    return None;
                }
                // A row from before a detachment does not say which node holds the disk now.
                let holds =
                    |node: &&InstanceId| !self.journal.detached.is_recent_or_pending(&row.id, node);
                let nodes: Vec<_> = row.attachments.iter().filter(holds).cloned().collect();
                let is_proven = !nodes.is_empty() || nobody.holds(READ_LAG);
                is_proven.then_some(Some((nodes, row.multi_attach)))
            };
            let shown = self.disks.wait_until(disk, deadline, decide).await;
            if let Some(holders) = shown.map_err(wait(step()))? {
                return Ok(holders);
            }
            let found = self.disks.confirm(disk, deadline).await;
            match found.map_err(wait(step()))? {
                Presence::Absent(_) => return Ok((Vec::new(), false)),
                Presence::Row(_) => nobody.ends(),
            }
        }
    }
}

impl Call<'_> {
    /// As [`Attacher::detach`], and says whether the node certainly held the disk until then.
    pub(super) async fn detach(self) -> Result<bool> {
        let (row, was_held) = self.order_detach().await?;
        if row.is_some_and(|row| is_read_only(&row, self.node)) {
            // The tag would make the next writer on the node a reader.
            self.set_read_only(false).await?;
        }
        Ok(was_held)
    }

    /// The row once the node does not hold the disk, none if the disk is not visible; and whether the node held it.
    async fn order_detach(self) -> Result<(Option<Disk>, bool)> {
        let (ecs, node) = (&self.attacher.ecs, self.node);
        let mut order = Order::new(self, Operation::Detach);
        let mut hidden = Pauses::default();
        let (mut free, mut was_held) = (StaleReadGuard::default(), false);
        loop {
            order.admit().await?;
            let (disk, instance) = self.ids();
            let request = DetachDisk {
                disk,
                instance,
                delete_with_instance: order.is_ephemeral,
            };
            let Err(refusal) = ecs.detach_disk(self.deadline, &request).await else {
                order.accepted();
                self.attacher
                    .journal
                    .attached
                    .record_resolved(self.disk, node);
                was_held = true;
                let detached = order.hold(self.wait_detached(&mut hidden)).await?;
                if detached.is_some() {
                    return Ok((detached, true));
                }
                order.release();
                continue;
            };
            use Condition::{AlreadyDetached, NoSuchDisk, NotAttached};
            let is_not_held =
                [NoSuchDisk, AlreadyDetached, NotAttached].contains(&refusal.condition());
            let may_take_effect = self
                .attacher
                .journal
                .attached
                .may_take_effect(self.disk, node);
            if is_not_held && !may_take_effect {
                order.release();
                return Ok((self.read_detached().await?, was_held));
            }
            if order.may_repeat(&refusal).await {
                continue;
            }
            let is_unclear =
                [Kind::Conflict, Kind::Ambiguous, Kind::NotFound].contains(&refusal.kind());
            if !is_not_held && !is_unclear {
                return Err(order.failed(refusal));
            }
            match self.look().await {
                Ok(Observation::Row(row)) if row.is_attached_to(node) => {
                    free.ends();
                    if row.status == DiskStatus::Detaching {
                        was_held = true;
                        let detached = order.hold(self.wait_detached(&mut hidden)).await?;
                        if detached.is_some() {
                            return Ok((detached, true));
                        }
                    }
                }
                // It may be attaching to this very node.
                Ok(Observation::Row(row)) if row.status == DiskStatus::Attaching => free.ends(),
                // The refusal does not say that the node does not hold the disk: reads must have caught up.
                Ok(Observation::Row(row))
                    if free.holds(READ_LAG) && shows_detached(&row, node) && !may_take_effect =>
                {
                    self.note_detached();
                    return Ok((Some(Disk::clone(&row)), was_held));
                }
                Ok(_) => {}
                Err(error) => return Err(order.not_observed(refusal, error)),
            }
            match order.back_off(refusal).await {
                // A code for what does not exist must not pass for the volume's absence.
                Err(Error::Cloud { source, .. }) if source.kind() == Kind::NotFound => {
                    return Err(self.still_detaching(&source.to_string()));
                }
                waited => waited?,
            }
        }
    }

    /// The row once it agrees with the cloud's code that the node does not hold the disk; none if it is not visible.
    async fn read_detached(self) -> Result<Option<Disk>> {
        self.note_detached();
        let result = self.look().await;
        match result.map_err(wait(self.step(Operation::Detach)))? {
            Observation::Missing { .. } => Ok(None),
            Observation::Row(row) if shows_detached(&row, self.node) => Ok(Some(Disk::clone(&row))),
            Observation::Row(_) => self.wait_detached(&mut Pauses::default()).await,
        }
    }

    /// Waits until the disk is detached. None when it has not been visible for so long that another order should be sent
    /// to learn the state from its code.
    async fn wait_detached(self, hidden: &mut Pauses) -> Result<Option<Disk>> {
        let Self { disk, node, .. } = self;
        let (disks, journal) = (&self.attacher.disks, &self.attacher.journal);
        self.note_detached();
        let (began, is_hidden) = (Instant::now(), AtomicBool::new(false));
        let is_new_leader = journal.is_new_leader();
        let decide = |observation: Observation<Disk>| {
            let row = observation.row();
            is_hidden.store(row.is_none(), Ordering::Relaxed);
            let row = row?;
            // A row from before the disk was attached shows nothing.
            let is_attaching = row.status == DiskStatus::Attaching;
            let is_early = is_attaching || journal.attached.is_before(&row, node, is_new_leader);
            let is_proven =
                shows_detached(&row, node) && (!is_early || began.elapsed() >= READ_LAG);
            is_proven.then(|| Disk::clone(&row))
        };
        let operation = view::Operation::Detach;
        let row = tokio::select! {
            biased;
            row = disks.wait_until_done(disk, self.deadline, operation, decide) => row,
            () = reorder_due(&is_hidden, hidden) => return Ok(None),
        };
        let row = row.map_err(|error| match error {
            WaitError::Deadline { last } => self.still_detaching(&last),
            error => wait(self.step(Operation::Detach))(error),
        })?;
        journal.attached.forget(disk, node);
        journal.detached.note(disk, node, row.detached);
        journal.observe(&row);
        Ok(Some(row))
    }

    fn note_detached(self) {
        let detached = &self.attacher.journal.detached;
        detached.note(self.disk, self.node, None);
    }

    fn still_detaching(self, last: &str) -> Error {
        let step = self.step(Operation::Detach);
        let text =
            format!("cannot {step}: the deadline passed while waiting; last observed: {last}");
        refused(Failure::DetachStuck, text, None)
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
