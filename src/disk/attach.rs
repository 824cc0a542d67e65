//! Attaching: act first, look only when refused, answer when the disk is in use on the node.

use std::sync::Arc;

use super::error::{Error, cloud, wait};
use super::{Disks, Result};
use crate::base::Deadline;
use crate::cloud::poll::Seen;
use crate::cloud::{self as api, AttachDisk, Kind};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

/// So many looks in a row must say "free" after one has said "attaching", before the attachment
/// counts as failed: a single one may come from a replica that lags.
const LOOKS_TO_BELIEVE: u32 = 4;

impl Disks {
    /// Attaches the disk to the node, or finds it attached there.
    ///
    /// # Errors
    /// [`Error::InUseElsewhere`] when another node holds it: it is left there.
    pub async fn attach(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Disk> {
        let queue = |_| Error::Queue {
            verb: "attached to",
            node: node.clone(),
        };
        let _turn = self
            .slots
            .attach
            .turn(node, deadline)
            .await
            .map_err(queue)?;
        let request = AttachDisk {
            disk: disk.clone(),
            instance: node.clone(),
        };
        loop {
            match self.ecs.attach_disk(deadline, &request).await {
                Ok(()) => return self.wait_attached(deadline, disk, node).await,
                Err(error) => {
                    if let Some(row) = self.after_refusal(deadline, disk, node, error).await? {
                        return Ok(row);
                    }
                }
            }
        }
    }

    /// What to make of a refusal: the disk where it already is on the node; none when it is worth
    /// another attempt; else the error.
    async fn after_refusal(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
        refusal: api::Error,
    ) -> Result<Option<Disk>> {
        match refusal.kind() {
            Kind::Conflict | Kind::Ambiguous => {}
            Kind::NotFound if refusal.has_code("InvalidInstanceId.NotFound") => {
                return Err(Error::NoSuchNode {
                    node: node.clone(),
                    disk: disk.clone(),
                });
            }
            Kind::NotFound => return Err(Error::NoSuchDisk { disk: disk.clone() }),
            Kind::Quota => {
                let (disk, node) = (disk.clone(), node.clone());
                return Err(Error::NodeFull {
                    disk,
                    node,
                    source: refusal,
                });
            }
            Kind::Unreachable
            | Kind::Throttled
            | Kind::InFlight
            | Kind::TokenMismatch
            | Kind::OutOfStock
            | Kind::Denied
            | Kind::Resign
            | Kind::Invalid
            | Kind::Deadline
            | Kind::Credentials => return Err(cloud(step(disk, node))(refusal)),
        }
        tracing::debug!(
            disk.id = %disk,
            node.id = %node,
            cloud.code = refusal.code(),
            cloud.request_id = refusal.request_id(),
            "attach refused, looking at the disk"
        );
        let row = self.disk(deadline, disk).await?;
        match &row.status {
            DiskStatus::InUse if row.is_attached_to(node) => Ok(Some(row)),
            DiskStatus::InUse => {
                Err(elsewhere(&row, node).unwrap_or_else(|| cloud(step(disk, node))(refusal)))
            }
            DiskStatus::Attaching => self.wait_attached(deadline, disk, node).await.map(Some),
            // The instance is busy with another disk, or this look is a moment old; or the disk is
            // on its way to being free. The next look, a tick from now, is worth another attempt.
            DiskStatus::Available
            | DiskStatus::Creating
            | DiskStatus::Detaching
            | DiskStatus::ReIniting => {
                let free = |seen: Seen<Disk>| match seen {
                    Seen::Row(row) => (row.status == DiskStatus::Available
                        || row.status == DiskStatus::InUse)
                        .then_some(()),
                    Seen::Nothing => Some(()),
                    Seen::Failed(_) => None,
                };
                let waited = self.disks.until(disk, deadline, free).await;
                waited.map_err(wait(step(disk, node)))?;
                Ok(None)
            }
            DiskStatus::Unknown(_) => Err(cloud(step(disk, node))(refusal)),
        }
    }

    async fn wait_attached(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Disk> {
        let mut attaching = false;
        let mut doubts = 0;
        let decide = |seen: Seen<Disk>| {
            let row: Arc<Disk> = match seen {
                Seen::Row(row) => row,
                Seen::Nothing => {
                    doubts += 1;
                    let gone = Error::NoSuchDisk { disk: disk.clone() };
                    return (doubts >= LOOKS_TO_BELIEVE).then_some(Err(gone));
                }
                Seen::Failed(_) => return None,
            };
            if row.is_in_use_on(node) {
                return Some(Ok(Disk::clone(&row)));
            }
            if row.status == DiskStatus::InUse
                && let Some(error) = elsewhere(&row, node)
            {
                return Some(Err(error));
            }
            attaching |= row.status == DiskStatus::Attaching;
            if attaching && row.is_free() {
                doubts += 1;
                let fell = Error::FellBack {
                    disk: disk.clone(),
                    node: node.clone(),
                };
                return (doubts >= LOOKS_TO_BELIEVE).then_some(Err(fell));
            }
            doubts = 0;
            None
        };
        let waited = self.disks.until(disk, deadline, decide).await;
        waited.map_err(wait(step(disk, node)))?
    }
}

fn step(disk: &DiskId, node: &InstanceId) -> String {
    format!("attach disk {disk} to node {node}")
}

fn elsewhere(row: &Disk, node: &InstanceId) -> Option<Error> {
    let holder = row.attachments.iter().find(|holder| *holder != node)?;
    Some(Error::InUseElsewhere {
        disk: row.id.clone(),
        node: node.clone(),
        holder: holder.clone(),
    })
}
