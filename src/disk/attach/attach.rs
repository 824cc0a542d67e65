//! Attaching: act first, look only when refused, answer when the disk is in use on the node.

use super::Attacher;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::parallelism::is_busy;
use super::queue::{Operation, Permit};
use crate::base::Deadline;
use crate::cloud::view::{Look, Seen, WaitError};
use crate::cloud::{self as api, AttachDisk, Kind};
use crate::disk::Result;
use crate::disk::error::{Error, cloud, wait};
use crate::disk::stale_read::settled;
use crate::model::{Disk, DiskId, DiskStatus, Instance, InstanceId, InstanceStatus};

/// After which a disk that its instance does not let go of may be taken by force, where the cloud does
/// that at all. Letting go takes a minute at most (ECS, `DetachDisk`).
const STUCK: Duration = Duration::from_secs(60);

/// A disk that is on the node.
#[derive(Debug)]
pub(super) struct Attached {
    pub(super) row: Disk,
    /// Whether this call certainly brought it there.
    pub(super) fresh: bool,
}

/// How old the look may be that an attempt by force rests on, the call included.
const SURE: Duration = Duration::from_secs(5);

/// One attachment that is being tried.
#[derive(Debug)]
struct Attempt<'a> {
    deadline: Deadline,
    disk: &'a DiskId,
    node: &'a InstanceId,
    turn: Option<Permit>,
    hang: Option<StuckDetach>,
    /// The disk has hung long enough to be taken, if it still hangs then.
    due: bool,
    /// The last try was by force.
    forced: bool,
    /// The cloud does not take it by force.
    never: bool,
    /// The disk is an elastic ephemeral one.
    ephemeral: bool,
}

/// A disk that has been seen on its way off another node.
#[derive(Debug, PartialEq, Eq)]
struct StuckDetach {
    holders: Vec<InstanceId>,
    since: Instant,
}

impl Attempt<'_> {
    /// Notes how the disk is; true while it hangs, since when on the same node is kept.
    fn hangs(&mut self, row: &Disk) -> bool {
        if self.never || !hangs_elsewhere(row, self.node) {
            self.hang = None;
            return false;
        }
        let same = |hang: &StuckDetach| hang.holders == row.attachments;
        if !self.hang.as_ref().is_some_and(same) {
            self.hang = Some(StuckDetach {
                holders: row.attachments.clone(),
                since: Instant::now(),
            });
        }
        true
    }

    fn is_stuck(&self) -> bool {
        let hang = self.hang.as_ref();
        hang.is_some_and(|hang| hang.since.elapsed() >= STUCK)
    }
}

impl Attacher {
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
        let there = self.attach_tracked(deadline, disk, node).await?;
        Ok(there.row)
    }

    /// As [`Attacher::attach`], and tells who did it.
    pub(super) async fn attach_tracked(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Attached> {
        let mut attempt = Attempt {
            deadline,
            disk,
            node,
            turn: None,
            hang: None,
            due: false,
            forced: false,
            never: false,
            ephemeral: self.journal.ephemeral.contains(disk),
        };
        loop {
            if attempt.turn.is_none() {
                attempt.turn = Some(self.turn(deadline, disk, node, Operation::Attach).await?);
            }
            let sure = deadline.at_most(SURE);
            attempt.forced =
                std::mem::take(&mut attempt.due) && self.still_hangs(&mut attempt, sure).await;
            let until = if attempt.forced { sure } else { deadline };
            let request = AttachDisk {
                disk: disk.clone(),
                instance: node.clone(),
                force: attempt.forced,
                delete_with_instance: attempt.ephemeral,
            };
            let refusal = match self.ecs.attach_disk(until, &request).await {
                Ok(()) => {
                    self.journal.attached.on_its_way(disk, node);
                    let row = self.wait_attached(deadline, disk, node).await?;
                    return Ok(Attached { row, fresh: true });
                }
                Err(refusal) => refusal,
            };
            let in_the_way = |turn: &Permit| turn.is_in_the_way();
            if is_busy(refusal.code()) && attempt.turn.as_ref().is_some_and(in_the_way) {
                attempt.turn = None;
                continue;
            }
            if let Some(row) = self.after_refusal(&mut attempt, refusal).await? {
                return Ok(Attached { row, fresh: false });
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
        // Force is refused, and not the disk.
        let no_force = attempt.forced && refuses_force(&refusal);
        attempt.never |= no_force;
        if !attempt.ephemeral && self.is_ephemeral(deadline, disk, &refusal).await {
            attempt.ephemeral = true;
            return Ok(None);
        }
        // A try by force has little time: what became of it, the disk shows.
        let cut_short = attempt.forced && !deadline.is_over();
        if let Some(verdict) = super::incompatible::verdict(&refusal)
            && !no_force
        {
            return Err(self.unfit(deadline, disk, node, verdict, refusal).await);
        }
        match refusal.kind() {
            // A full node may hold this very disk.
            Kind::Conflict | Kind::Ambiguous | Kind::Quota => {}
            _ if no_force => {}
            Kind::Deadline | Kind::Unreachable | Kind::Throttled if cut_short => {}
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
            self.journal.attached.note(&row, node);
            return Ok(Some(Disk::clone(&row)));
        }
        if refusal.kind() == Kind::Quota && row.status != DiskStatus::Attaching {
            return Err(self.full(deadline, &row, node, refusal).await);
        }
        if let Some(error) = self.elsewhere(&row, node) {
            return Err(error);
        }
        match &row.status {
            // A shared disk may be on its way to another node, and its row does not say to which.
            DiskStatus::Attaching if !row.multi_attach => {
                self.wait_attached(deadline, disk, node).await.map(Some)
            }
            // The instance is busy with another disk, or this look is a moment old; or the disk is
            // on its way to being free. The next look, a tick from now, is worth another attempt.
            DiskStatus::Available
            | DiskStatus::InUse
            | DiskStatus::Attaching
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
        let &mut Attempt { deadline, disk, .. } = attempt;
        // It is the disk that is not ready, not the node: others need not wait for it there.
        if !matches!(row.status, DiskStatus::Available | DiskStatus::InUse) {
            attempt.turn = None;
        }
        let hangs = attempt.hangs(row);
        let down = hangs && self.is_down(attempt, &row.attachments).await;
        if down && !attempt.forced {
            attempt.due = true;
            return Ok(());
        }
        let free = |seen: Seen<Disk>| match seen {
            Seen::Row(now) if now.status == DiskStatus::Detaching => {
                let down = down && now.attachments == row.attachments;
                (attempt.hangs(&now) && (down || attempt.is_stuck())).then_some(true)
            }
            Seen::Row(row) => (row.status == DiskStatus::Available
                || row.status == DiskStatus::InUse)
                .then_some(false),
            Seen::Missing { .. } => Some(false),
            Seen::Failed(_) => None,
        };
        let waited = self.disks.until(disk, deadline, free).await;
        attempt.due = waited?;
        Ok(())
    }

    /// Whether the disk hangs where it hung, by a look of now: waiting for the turn took time.
    async fn still_hangs(&self, attempt: &mut Attempt<'_>, sure: Deadline) -> bool {
        let Some(before) = attempt.hang.take() else {
            return false;
        };
        match self.disks.look(attempt.disk, sure).await.map(Look::row) {
            Ok(Some(row)) if row.attachments == before.holders => {
                attempt.hang = Some(before);
                attempt.hangs(&row)
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Whether these instances certainly do not run. One that is not described is no proof: who may not
    /// see it gets an empty list.
    async fn is_down(&self, attempt: &Attempt<'_>, holders: &[InstanceId]) -> bool {
        for holder in holders {
            let row = self
                .instances
                .look(holder, attempt.deadline)
                .await
                .map(Look::row);
            let stopped = |row: Arc<Instance>| row.status == InstanceStatus::Stopped;
            if !row.is_ok_and(|row| row.is_some_and(stopped)) {
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
