//! Attaching: act first, look only when refused, answer when the disk is in use on the node.

use std::sync::Arc;

use super::error::{Error, cloud, wait};
use super::missing::{Doubt, LAG, UNSEEN, settled};
use super::{Disks, Result};
use crate::base::Deadline;
use crate::cloud::poll::{Seen, WaitError};
use crate::cloud::{self as api, AttachDisk, Kind};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

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
            force: false,
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
        if self.is_on(&row, node) {
            return Ok(Some(Disk::clone(&row)));
        }
        if refusal.kind() == Kind::Quota && row.status != DiskStatus::Attaching {
            return Err(Error::NodeFull {
                disk: disk.clone(),
                node: node.clone(),
                source: refusal,
            });
        }
        if let Some(error) = self.elsewhere(&row, node) {
            return Err(error);
        }
        match &row.status {
            DiskStatus::Attaching => self.wait_attached(deadline, disk, node).await.map(Some),
            // The instance is busy with another disk, or this look is a moment old; or the disk is
            // on its way to being free. The next look, a tick from now, is worth another attempt.
            DiskStatus::Available
            | DiskStatus::InUse
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

    /// Whether the row shows the disk in use on the node, and not only as it was before it left.
    fn is_on(&self, row: &Disk, node: &InstanceId) -> bool {
        row.is_in_use_on(node) && !self.left.lately(&row.id, node)
    }

    /// The refusal, when another node has the disk in use and has not let go of it just now.
    fn elsewhere(&self, row: &Disk, node: &InstanceId) -> Option<Error> {
        let has = |holder: &&InstanceId| *holder != node && !self.left.lately(&row.id, holder);
        let holder = row.attachments.iter().find(has)?;
        (row.status == DiskStatus::InUse).then(|| Error::InUseElsewhere {
            disk: row.id.clone(),
            node: node.clone(),
            holder: holder.clone(),
        })
    }

    async fn wait_attached(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Disk> {
        let mut attaching = false;
        let (mut missing, mut free) = (Doubt::default(), Doubt::default());
        let decide = |seen: Seen<Disk>| {
            let row: Arc<Disk> = match seen {
                Seen::Row(row) => row,
                Seen::Nothing => {
                    let gone = Error::NoSuchDisk { disk: disk.clone() };
                    return missing.holds(LAG).then_some(Err(gone));
                }
                Seen::Failed(_) => return None,
            };
            missing.ends();
            if self.is_on(&row, node) {
                return Some(Ok(Disk::clone(&row)));
            }
            if let Some(error) = self.elsewhere(&row, node) {
                return Some(Err(error));
            }
            attaching |= row.status == DiskStatus::Attaching;
            if row.is_free() {
                // It may have fallen back between two looks, or this one may be of before the call.
                let long = if attaching { LAG } else { UNSEEN };
                let fell = Error::FellBack {
                    disk: disk.clone(),
                    node: node.clone(),
                };
                return free.holds(long).then_some(Err(fell));
            }
            free.ends();
            None
        };
        let waited = self.disks.until(disk, deadline, decide).await;
        waited.map_err(wait(step(disk, node)))?
    }
}

fn step(disk: &DiskId, node: &InstanceId) -> String {
    format!("attach disk {disk} to node {node}")
}
