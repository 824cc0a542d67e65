//! Detaching: act first, look only when refused, answer when the node no longer holds the disk.

use super::Attacher;
use tokio::time::Instant;

use super::parallelism::is_busy;
use super::queue::Operation;
use crate::base::Deadline;
use crate::cloud::view::{self, Look, Seen, WaitError};
use crate::cloud::{self as api, DetachDisk, Kind};
use crate::disk::Result;
use crate::disk::error::{Error, cloud, wait};
use crate::disk::stale_read::{LAG, StaleReadGuard};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

/// By these the cloud says itself that the node does not hold the disk.
const NOT_HELD: [&str; 3] = [
    "InvalidDiskId.NotFound",
    "InvalidDisk.AlreadyDetached",
    "DependencyViolation",
];

impl Attacher {
    /// Detaches the disk from the node. A disk that the node does not hold, or that is gone, is
    /// success; another node's hold on it is left alone.
    ///
    /// # Errors
    /// When the cloud refuses for good, or the disk does not come off by the deadline; also when it is off
    /// and the tag that the node only read it stays. The repetition takes that off.
    pub async fn detach(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<()> {
        self.detach_tracked(deadline, disk, node).await.map(|_| ())
    }

    /// As [`Attacher::detach`], and tells how it came off.
    pub(super) async fn detach_tracked(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Detached> {
        let off = self.order_detach(deadline, disk, node).await?;
        if let Some(row) = &off.row {
            self.unmark(deadline, row, node).await?;
        }
        Ok(off)
    }

    async fn order_detach(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Detached> {
        let mut turn = self.turn(deadline, disk, node, Operation::Detach).await?;
        let mut request = DetachDisk {
            disk: disk.clone(),
            instance: node.clone(),
            delete_with_instance: self.journal.ephemeral.contains(disk),
        };
        let mut off = StaleReadGuard::default();
        loop {
            let refusal = match self.ecs.detach_disk(deadline, &request).await {
                Ok(()) => {
                    let row = self.wait_detached(deadline, disk, node).await?;
                    return Ok(Detached { row, done: true });
                }
                Err(refusal) => refusal,
            };
            if refusal.code().is_some_and(|code| NOT_HELD.contains(&code)) {
                // An attempt before this one may have taken it off, a moment ago. The cloud says so,
                // and its descriptions must agree.
                self.journal.detached.note(disk, node, None);
                let row = self.confirm_off(deadline, disk, node).await?;
                return Ok(Detached { row, done: false });
            }
            if !request.delete_with_instance && self.is_ephemeral(deadline, disk, &refusal).await {
                request.delete_with_instance = true;
                continue;
            }
            if is_busy(refusal.code()) && turn.is_in_the_way() {
                drop(turn);
                turn = self.turn(deadline, disk, node, Operation::Detach).await?;
                continue;
            }
            match refusal.kind() {
                Kind::Conflict | Kind::Ambiguous | Kind::NotFound => {}
                Kind::Unreachable
                | Kind::Throttled
                | Kind::InFlight
                | Kind::TokenMismatch
                | Kind::OutOfStock
                | Kind::Quota
                | Kind::Precondition
                | Kind::OutOfRange
                | Kind::Expired
                | Kind::Bug
                | Kind::Denied
                | Kind::Resign
                | Kind::Invalid
                | Kind::Deadline
                | Kind::Credentials => return Err(cloud(step(disk, node))(refusal)),
            }
            match self.disks.look(disk, deadline).await.map(Look::row) {
                Ok(Some(row)) if row.is_attached_to(node) => {
                    if row.status == DiskStatus::Detaching {
                        let row = self.wait_detached(deadline, disk, node).await?;
                        return Ok(Detached { row, done: true });
                    }
                    off.ends();
                }
                // It may be on its way to this very node.
                Ok(Some(row)) if row.status == DiskStatus::Attaching => off.ends(),
                // A refusal that does not say so is taken for it only when reads have caught up.
                Ok(row) if off.holds(LAG) => {
                    self.journal.detached.note(disk, node, None);
                    let row = row.map(|row| Disk::clone(&row));
                    return Ok(Detached { row, done: false });
                }
                Ok(_) => {}
                Err(error) => return Err(not_seen(disk, node, refusal, error)),
            }
            // The node is busy with another disk, or this look is of before the attachment: the
            // next one, a tick from now, is worth another attempt.
            let next = |seen| matches!(seen, Seen::Row(_) | Seen::Missing { .. }).then_some(());
            let waited = self.disks.until(disk, deadline, next).await;
            waited.map_err(|error| not_seen(disk, node, refusal, error))?;
        }
    }

    /// Detaches the disk from every node that holds it (CSI: an empty node id).
    ///
    /// # Errors
    /// As [`Attacher::detach`].
    pub async fn detach_everywhere(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        loop {
            let Held { holders, shared } = self.holders(deadline, disk).await?;
            let mut done = !shared;
            for node in &holders {
                done &= self.detach_tracked(deadline, disk, node).await?.done;
            }
            // Only one node can hold it, that one did and has let go, and nobody attaches it while this
            // call has it to itself. Else only reads that have caught up show that nobody has it.
            if done || holders.is_empty() {
                return Ok(());
            }
        }
    }

    /// Who holds the disk; nobody once that can be believed. While it is on its way to a node, no
    /// description says to which.
    async fn holders(&self, deadline: Deadline, disk: &DiskId) -> Result<Held> {
        let mut nobody = StaleReadGuard::default();
        let holders = |seen: Seen<Disk>| {
            let held = match seen {
                Seen::Row(row) => {
                    if matches!(row.status, DiskStatus::Attaching | DiskStatus::Detaching)
                        && row.attachments.is_empty()
                    {
                        nobody.ends();
                        return None;
                    }
                    // A read of before it left tells nothing of who has it now.
                    let has = |node: &&InstanceId| !self.journal.detached.lately(disk, node);
                    Held {
                        holders: row.attachments.iter().filter(has).cloned().collect(),
                        shared: row.multi_attach,
                    }
                }
                Seen::Missing { .. } => Held::default(),
                Seen::Failed(_) => return None,
            };
            (!held.holders.is_empty() || nobody.holds(LAG)).then_some(held)
        };
        let waited = self.disks.until(disk, deadline, holders).await;
        waited.map_err(wait(format!(
            "detach disk {disk} from whichever node holds it"
        )))
    }

    /// Looks whether the disk is off, and waits for it where the look is of before.
    async fn confirm_off(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Option<Disk>> {
        match self.disks.look(disk, deadline).await.map(Look::row) {
            Ok(None) => Ok(None),
            Ok(Some(row)) if !row.is_attached_to(node) => Ok(Some(Disk::clone(&row))),
            Ok(Some(_)) => self.wait_detached(deadline, disk, node).await,
            Err(error) => Err(wait(step(disk, node))(error)),
        }
    }

    /// Waits until the disk is off, by what is seen: a look that may be of before the disk came to the
    /// node proves nothing.
    async fn wait_detached(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Option<Disk>> {
        self.journal.detached.note(disk, node, None);
        let began = Instant::now();
        let off = |seen: Seen<Disk>| match seen {
            Seen::Row(row) if row.is_attached_to(node) => None,
            Seen::Row(row) => {
                let early = row.status == DiskStatus::Attaching
                    || self.journal.attached.is_before(&row, node);
                (!early || began.elapsed() >= LAG).then(|| Some(Disk::clone(&row)))
            }
            // A disk that came lately may have been made lately as well: then this is of before that.
            Seen::Missing { .. } => {
                let early = self.journal.attached.is_unsure(disk, node);
                (!early || began.elapsed() >= LAG).then_some(None)
            }
            Seen::Failed(_) => None,
        };
        let row = match self
            .disks
            .until_done(disk, deadline, view::Operation::Detach, off)
            .await
        {
            Ok(row) => row,
            Err(WaitError::Deadline { last }) => {
                return Err(Error::StillDetaching {
                    disk: disk.clone(),
                    node: node.clone(),
                    last,
                });
            }
            Err(error) => return Err(wait(step(disk, node))(error)),
        };
        self.journal.attached.forget(disk, node);
        let at = row.as_ref().and_then(|row| row.detached);
        self.journal.detached.note(disk, node, at);
        Ok(row)
    }
}

/// A disk that is off the node.
#[derive(Debug)]
pub(super) struct Detached {
    /// As it was seen then; none when it is gone.
    pub(super) row: Option<Disk>,
    /// Whether the node certainly held it until then.
    pub(super) done: bool,
}

/// Who holds a disk.
#[derive(Debug, Default)]
struct Held {
    holders: Vec<InstanceId>,
    /// Whether several can.
    shared: bool,
}

/// What the cloud refused tells more than that no time was left to look.
fn not_seen(disk: &DiskId, node: &InstanceId, refusal: api::Error, error: WaitError) -> Error {
    match error {
        WaitError::Deadline { .. } => cloud(step(disk, node))(refusal),
        WaitError::Cloud(_) => wait(step(disk, node))(error),
    }
}

fn step(disk: &DiskId, node: &InstanceId) -> String {
    format!("detach disk {disk} from node {node}")
}
