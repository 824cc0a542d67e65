//! Attaching: act first, look only when refused, answer when the disk is in use on the node.

use std::time::Duration;

use tokio::time::Instant;

use super::error::{Error, cloud, wait};
use super::missing::settled;
use super::slots::Way;
use super::turn::is_busy;
use super::{Disks, Result};
use crate::base::Deadline;
use crate::cloud::poll::{Seen, WaitError};
use crate::cloud::{self as api, AttachDisk, Kind};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId, InstanceStatus};

/// After which a disk that its instance does not let go of may be taken by force, where the cloud does
/// that at all. Letting go takes a minute at most (ECS, `DetachDisk`).
const STUCK: Duration = Duration::from_secs(60);

/// A disk that is on the node.
#[derive(Debug)]
pub(super) struct There {
    pub(super) row: Disk,
    /// Whether this call certainly brought it there.
    pub(super) fresh: bool,
}

/// Whether a disk that hangs on another instance may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Force {
    No,
    Yes,
    /// It was tried, and the cloud does not do it.
    Refused,
}

/// One attachment that is being tried.
#[derive(Debug)]
struct Attempt<'a> {
    deadline: Deadline,
    disk: &'a DiskId,
    node: &'a InstanceId,
    began: Instant,
    force: Force,
}

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
        let there = self.bring(deadline, disk, node).await?;
        Ok(there.row)
    }

    /// As [`Disks::attach`], and tells who did it.
    pub(super) async fn bring(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<There> {
        let mut attempt = Attempt {
            deadline,
            disk,
            node,
            began: Instant::now(),
            force: Force::No,
        };
        let mut turn = self.turn(deadline, disk, node, Way::On).await?;
        loop {
            let request = AttachDisk {
                disk: disk.clone(),
                instance: node.clone(),
                force: attempt.force == Force::Yes,
            };
            let refusal = match self.ecs.attach_disk(deadline, &request).await {
                Ok(()) => {
                    self.came.on_its_way(disk, node);
                    let row = self.wait_attached(deadline, disk, node).await?;
                    return Ok(There { row, fresh: true });
                }
                Err(refusal) => refusal,
            };
            if is_busy(refusal.code()) && turn.is_in_the_way() {
                drop(turn);
                turn = self.turn(deadline, disk, node, Way::On).await?;
                continue;
            }
            if attempt.force == Force::Yes && refuses_force(&refusal) {
                attempt.force = Force::Refused;
            }
            if let Some(row) = self.after_refusal(&mut attempt, refusal).await? {
                return Ok(There { row, fresh: false });
            }
        }
    }

    /// What to make of a refusal: the disk where it already is on the node; none when it is worth
    /// another attempt; else the error.
    async fn after_refusal(
        &self,
        attempt: &mut Attempt<'_>,
        refusal: api::Error,
    ) -> Result<Option<Disk>> {
        let &mut Attempt {
            deadline,
            disk,
            node,
            ..
        } = attempt;
        if let Some(verdict) = super::unfit::verdict(&refusal)
            && attempt.force != Force::Refused
        {
            return Err(self.unfit(deadline, disk, node, verdict, refusal).await);
        }
        match refusal.kind() {
            // A full node may hold this very disk.
            Kind::Conflict | Kind::Ambiguous | Kind::Quota => {}
            _ if attempt.force == Force::Refused && refuses_force(&refusal) => {}
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
            // An attempt whose answer was lost may have brought it a moment ago.
            self.came.note(&row, node);
            return Ok(Some(Disk::clone(&row)));
        }
        if refusal.kind() == Kind::Quota && row.status != DiskStatus::Attaching {
            return Err(self.full(deadline, &row, node, refusal).await);
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
            | DiskStatus::ReIniting => match self.wait_free(attempt, &row).await {
                Ok(()) => Ok(None),
                Err(WaitError::Deadline { .. }) => Err(cloud(step(disk, node))(refusal)),
                Err(error) => Err(wait(step(disk, node))(error)),
            },
            DiskStatus::Unknown(_) => Err(cloud(step(disk, node))(refusal)),
        }
    }

    /// Waits until another attempt is worth it: the disk is free or in use, or may be taken by force.
    async fn wait_free(
        &self,
        attempt: &mut Attempt<'_>,
        row: &Disk,
    ) -> std::result::Result<(), WaitError> {
        let hangs = attempt.force == Force::No && hangs_elsewhere(row, attempt.node);
        if hangs && self.is_down(attempt, &row.attachments).await {
            attempt.force = Force::Yes;
            return Ok(());
        }
        let stuck = attempt.began + STUCK;
        let node = attempt.node;
        let free = |seen: Seen<Disk>| match seen {
            Seen::Row(row) if row.status == DiskStatus::Detaching => {
                (hangs && Instant::now() >= stuck && hangs_elsewhere(&row, node)).then_some(true)
            }
            Seen::Row(row) => (row.status == DiskStatus::Available
                || row.status == DiskStatus::InUse)
                .then_some(false),
            Seen::Nothing => Some(false),
            Seen::Failed(_) => None,
        };
        let waited = self.disks.until(attempt.disk, attempt.deadline, free).await;
        if waited? {
            attempt.force = Force::Yes;
        }
        Ok(())
    }

    /// Whether these instances certainly do not run. One that is not described counts only where the
    /// node that waits is: who may not see instances gets an empty list.
    async fn is_down(&self, attempt: &Attempt<'_>, holders: &[InstanceId]) -> bool {
        let look = |id| self.instances.look(id, attempt.deadline);
        for holder in holders {
            let (there, here) = tokio::join!(look(holder), look(attempt.node));
            let down = match (there, here) {
                (Ok(Some(row)), _) => row.status == InstanceStatus::Stopped,
                (Ok(None), Ok(Some(_))) => true,
                _ => false,
            };
            if !down {
                return false;
            }
        }
        true
    }
}

/// Whether the disk is one that can be taken by force, and on its way off another node: whoever may
/// decide that has decided it. A disk in use is never taken.
fn hangs_elsewhere(row: &Disk, node: &InstanceId) -> bool {
    row.category.is_regional()
        && !row.multi_attach
        && row.status == DiskStatus::Detaching
        && !row.attachments.is_empty()
        && !row.is_attached_to(node)
}

/// The cloud takes no disks by force here: within one zone, or of this kind.
fn refuses_force(refusal: &api::Error) -> bool {
    refusal.code().is_some_and(|code| {
        code == "InvalidInstance.ZoneConflict" || code.starts_with("InvalidParameterForce.")
    })
}

pub(super) fn step(disk: &DiskId, node: &InstanceId) -> String {
    format!("attach disk {disk} to node {node}")
}
