//! Attaching: act first, look only when refused, answer when the disk is in use on the node.

use std::sync::Arc;

use super::error::{Error, cloud, wait};
use super::missing::{LOOKS_TO_BELIEVE, settled};
use super::{Disks, Result};
use crate::base::Deadline;
use crate::cloud::poll::{Seen, WaitError};
use crate::cloud::{self as api, AttachDisk, Kind};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

/// So many looks in a row must say "free" where none has said "attaching": it may have fallen back
/// between two looks, or the replica may lag.
const LOOKS_TO_GIVE_UP: u32 = 20;

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
            disk: disk.clone(),
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
            // A full node may hold this very disk.
            Kind::Conflict | Kind::Ambiguous | Kind::Quota => {}
            Kind::NotFound if refusal.has_code("InvalidInstanceId.NotFound") => {
                return Err(Error::NoSuchNode {
                    node: node.clone(),
                    disk: disk.clone(),
                });
            }
            Kind::NotFound => return Err(Error::NoSuchDisk { disk: disk.clone() }),
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
        let row = match settled(&self.disks, disk, deadline).await {
            Ok(Some(row)) => row,
            Ok(None) => return Err(Error::NoSuchDisk { disk: disk.clone() }),
            // What was refused tells more than that there was no time to look.
            Err(WaitError::Deadline { .. }) => return Err(cloud(step(disk, node))(refusal)),
            Err(error) => return Err(wait(step(disk, node))(error)),
        };
        match &row.status {
            DiskStatus::InUse if row.is_attached_to(node) => Ok(Some(Disk::clone(&row))),
            _ if refusal.kind() == Kind::Quota && row.status != DiskStatus::Attaching => {
                Err(Error::NodeFull {
                    disk: disk.clone(),
                    node: node.clone(),
                    source: refusal,
                })
            }
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
                match self.disks.until(disk, deadline, free).await {
                    Ok(()) => Ok(None),
                    Err(WaitError::Deadline { .. }) => Err(cloud(step(disk, node))(refusal)),
                    Err(error) => Err(wait(step(disk, node))(error)),
                }
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
        let (mut missing, mut doubts) = (0, 0);
        let decide = |seen: Seen<Disk>| {
            let row: Arc<Disk> = match seen {
                Seen::Row(row) => row,
                Seen::Nothing => {
                    missing += 1;
                    let gone = Error::NoSuchDisk { disk: disk.clone() };
                    return (missing >= LOOKS_TO_BELIEVE).then_some(Err(gone));
                }
                Seen::Failed(_) => return None,
            };
            missing = 0;
            if row.is_in_use_on(node) {
                return Some(Ok(Disk::clone(&row)));
            }
            if row.status == DiskStatus::InUse
                && let Some(error) = elsewhere(&row, node)
            {
                return Some(Err(error));
            }
            attaching |= row.status == DiskStatus::Attaching;
            if row.is_free() {
                doubts += 1;
                let enough = if attaching {
                    LOOKS_TO_BELIEVE
                } else {
                    LOOKS_TO_GIVE_UP
                };
                let fell = Error::FellBack {
                    disk: disk.clone(),
                    node: node.clone(),
                };
                return (doubts >= enough).then_some(Err(fell));
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
