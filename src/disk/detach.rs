//! Detaching: act first, look only when refused, answer when the node no longer holds the disk.

use super::error::{Error, cloud, wait};
use super::{Disks, Result};
use crate::base::Deadline;
use crate::cloud::poll::{Seen, WaitError};
use crate::cloud::{DetachDisk, Kind};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

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
        loop {
            let refusal = match self.ecs.detach_disk(deadline, &request).await {
                Ok(()) => return self.wait_detached(deadline, disk, node).await,
                Err(refusal) => refusal,
            };
            match refusal.kind() {
                Kind::NotFound if refusal.has_code("InvalidDiskId.NotFound") => return Ok(()),
                Kind::Conflict | Kind::Ambiguous | Kind::NotFound => {}
                Kind::Unreachable
                | Kind::Throttled
                | Kind::InFlight
                | Kind::TokenMismatch
                | Kind::OutOfStock
                | Kind::Quota
                | Kind::Denied
                | Kind::Resign
                | Kind::Invalid
                | Kind::Deadline
                | Kind::Credentials => return Err(cloud(step(disk, node))(refusal)),
            }
            let row = match self.disk(deadline, disk).await {
                Ok(row) => row,
                Err(Error::NoSuchDisk { .. }) => return Ok(()),
                Err(error) => return Err(error),
            };
            match &row.status {
                DiskStatus::Detaching if row.is_attached_to(node) => {
                    return self.wait_detached(deadline, disk, node).await;
                }
                // It may be on its way to this very node, or the node is busy with another disk:
                // the next look, a tick from now, is worth another attempt.
                DiskStatus::Attaching => self.next_look(deadline, disk, node).await?,
                _ if row.is_attached_to(node) => self.next_look(deadline, disk, node).await?,
                DiskStatus::Creating
                | DiskStatus::Available
                | DiskStatus::InUse
                | DiskStatus::Detaching
                | DiskStatus::ReIniting
                | DiskStatus::Unknown(_) => return Ok(()),
            }
        }
    }

    /// Detaches the disk from every node that holds it (CSI: an empty node id).
    ///
    /// # Errors
    /// As [`Disks::detach`].
    pub async fn detach_everywhere(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        let row = match self.disk(deadline, disk).await {
            Ok(row) => row,
            Err(Error::NoSuchDisk { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        for node in &row.attachments {
            self.detach(deadline, disk, node).await?;
        }
        Ok(())
    }

    async fn next_look(&self, deadline: Deadline, disk: &DiskId, node: &InstanceId) -> Result<()> {
        let next = |seen| matches!(seen, Seen::Row(_) | Seen::Nothing).then_some(());
        self.disks
            .until(disk, deadline, next)
            .await
            .map_err(wait(step(disk, node)))
    }

    async fn wait_detached(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<()> {
        let off = |seen: Seen<Disk>| match seen {
            Seen::Row(row) => (!row.is_attached_to(node)).then_some(()),
            Seen::Nothing => Some(()),
            Seen::Failed(_) => None,
        };
        let waited: std::result::Result<(), WaitError> =
            self.disks.until(disk, deadline, off).await;
        waited.map_err(wait(step(disk, node)))
    }
}

fn step(disk: &DiskId, node: &InstanceId) -> String {
    format!("detach disk {disk} from node {node}")
}
