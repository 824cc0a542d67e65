//! Detaching: act first, look only when refused, answer when the node no longer holds the disk.

use super::error::{Error, cloud, wait};
use super::missing::{Doubt, LAG};
use super::{Disks, Result};
use crate::base::Deadline;
use crate::cloud::poll::{Seen, WaitError};
use crate::cloud::{self as api, DetachDisk, Kind};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

/// By these the cloud says itself that the node does not hold the disk.
const NOT_HELD: [&str; 3] = [
    "InvalidDiskId.NotFound",
    "InvalidDisk.AlreadyDetached",
    "DependencyViolation",
];

impl Disks {
    /// Detaches the disk from the node. A disk that the node does not hold, or that is gone, is
    /// success; another node's hold on it is left alone.
    ///
    /// # Errors
    /// When the cloud refuses for good, or the disk does not come off by the deadline.
    pub async fn detach(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<()> {
        let queue = |_| Error::Queue {
            disk: disk.clone(),
            verb: "detached from",
            node: node.clone(),
        };
        let _turn = self
            .slots
            .detach
            .turn(node, deadline)
            .await
            .map_err(queue)?;
        let request = DetachDisk {
            disk: disk.clone(),
            instance: node.clone(),
        };
        let mut off = Doubt::default();
        loop {
            let refusal = match self.ecs.detach_disk(deadline, &request).await {
                Ok(()) => return self.wait_detached(deadline, disk, node).await,
                Err(refusal) => refusal,
            };
            if refusal.code().is_some_and(|code| NOT_HELD.contains(&code)) {
                // An attempt before this one may have taken it off, a moment ago.
                self.left.note(disk, node);
                return Ok(());
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
            match self.disks.look(disk, deadline).await {
                Ok(Some(row)) if row.is_attached_to(node) => {
                    if row.status == DiskStatus::Detaching {
                        return self.wait_detached(deadline, disk, node).await;
                    }
                    off.ends();
                }
                // It may be on its way to this very node.
                Ok(Some(row)) if row.status == DiskStatus::Attaching => off.ends(),
                // A refusal that does not say so is taken for it only when reads have caught up.
                Ok(_) if off.holds(LAG) => {
                    self.left.note(disk, node);
                    return Ok(());
                }
                Ok(_) => {}
                Err(error) => return Err(not_seen(disk, node, refusal, error)),
            }
            // The node is busy with another disk, or this look is of before the attachment: the
            // next one, a tick from now, is worth another attempt.
            let next = |seen| matches!(seen, Seen::Row(_) | Seen::Nothing).then_some(());
            let waited = self.disks.until(disk, deadline, next).await;
            waited.map_err(|error| not_seen(disk, node, refusal, error))?;
        }
    }

    /// Detaches the disk from every node that holds it (CSI: an empty node id).
    ///
    /// # Errors
    /// As [`Disks::detach`].
    pub async fn detach_everywhere(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        loop {
            let holders = self.holders(deadline, disk).await?;
            if holders.is_empty() {
                return Ok(());
            }
            for node in &holders {
                self.detach(deadline, disk, node).await?;
            }
        }
    }

    /// Who holds the disk; nobody once that can be believed. While it is on its way to a node, no
    /// description says to which.
    async fn holders(&self, deadline: Deadline, disk: &DiskId) -> Result<Vec<InstanceId>> {
        let mut nobody = Doubt::default();
        let holders = |seen: Seen<Disk>| {
            let held: Vec<InstanceId> = match seen {
                Seen::Row(row) => {
                    if matches!(row.status, DiskStatus::Attaching | DiskStatus::Detaching)
                        && row.attachments.is_empty()
                    {
                        nobody.ends();
                        return None;
                    }
                    // A read of before it left tells nothing of who has it now.
                    let has = |node: &&InstanceId| !self.left.lately(disk, node);
                    row.attachments.iter().filter(has).cloned().collect()
                }
                Seen::Nothing => Vec::new(),
                Seen::Failed(_) => return None,
            };
            (!held.is_empty() || nobody.holds(LAG)).then_some(held)
        };
        let waited = self.disks.until(disk, deadline, holders).await;
        waited.map_err(wait(format!(
            "detach disk {disk} from whichever node holds it"
        )))
    }

    async fn wait_detached(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<()> {
        self.left.note(disk, node);
        let off = |seen: Seen<Disk>| match seen {
            Seen::Row(row) => (!row.is_attached_to(node)).then_some(()),
            Seen::Nothing => Some(()),
            Seen::Failed(_) => None,
        };
        let waited: std::result::Result<(), WaitError> =
            self.disks.until(disk, deadline, off).await;
        waited.map_err(wait(step(disk, node)))?;
        self.left.note(disk, node);
        Ok(())
    }
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
