//! Growing a disk.

use super::Result;
use super::attempts::AttemptHistory;
use super::attempts::is_final;
use super::error::{Error, cloud, wait};
use super::read::read_disk;
use super::stale_read::{LAG, StaleReadGuard};
use crate::base::Deadline;
use std::sync::Arc;

use crate::cloud::Ecs;
use crate::cloud::view::{Observation, Operation, Poller};
use crate::cloud::{self as api, Condition, Kind, ResizeDisk, ResizeMode};
use crate::model::{ClientToken, Disk, DiskId, DiskStatus, Gib, InstanceId, SizeRange};

/// The largest disk of all: what a category that this driver does not know may grow to.
const LARGEST: Gib = Gib(65536);

#[derive(Debug)]
pub struct Resizer {
    ecs: Arc<dyn Ecs>,
    disks: Arc<Poller<DiskId, Disk>>,
    attempts: AttemptHistory,
}

impl Resizer {
    pub(super) fn new(ecs: Arc<dyn Ecs>, disks: Arc<Poller<DiskId, Disk>>) -> Self {
        Self {
            ecs,
            disks,
            attempts: AttemptHistory::default(),
        }
    }

    /// Grows the disk to the smallest size that the request admits, unless it is that large, and
    /// returns what it is then.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when the disk is larger than the limit already, or its category does
    /// not sell such a size; [`Error::OnlyOffline`] and [`Error::NodeStopped`] when who has it stands
    /// in the way.
    pub async fn resize(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        wanted: SizeRange,
    ) -> Result<Disk> {
        let row = read_disk(&self.disks, deadline, disk).await?;
        let refuse = |reasons| Error::OutOfRange {
            name: disk.to_string(),
            reasons,
        };
        if wanted
            .required
            .is_none_or(|required| row.size.bytes() >= required)
        {
            if wanted.admits(row.size) {
                return Ok(row);
            }
            return Err(refuse(format!(
                "it is {} large, wanted {wanted}, and no disk shrinks",
                row.size
            )));
        }
        let sizes = row.category.sizes().unwrap_or(Gib(1)..=LARGEST);
        let size = wanted.resolve(sizes);
        let size = size.map_err(|refused| refuse(format!("{}: {refused}", row.category)))?;
        let step = || format!("resize disk {disk} from {} to {size}", row.size);
        let outcome = self.order_either(deadline, &row, size).await;
        match outcome {
            Ok(()) => self.attempts.note(disk.as_str(), |past| past.refused = 0),
            // It is that large already: an earlier call did it, and the look was of before.
            Err(error) if error.condition() == Condition::NotLarger => {}
            Err(error) if error.condition() == Condition::SizeNotSold => {
                return Err(refuse(format!("{}: {error}", row.category)));
            }
            Err(error) => return Err(self.refused(deadline, &row, error).await),
        }
        self.wait_grown(deadline, disk, size)
            .await
            .map_err(wait(step()))
    }

    /// What to tell of a refusal, with who has the disk now.
    async fn refused(&self, deadline: Deadline, row: &Disk, source: api::Error) -> Error {
        let offline = source.condition() == Condition::OnlyOffline;
        if !offline && source.condition() != Condition::NodeStopped {
            return cloud(format!("resize disk {}", row.id))(source);
        }
        let looked = self.disks.look(&row.id, deadline).await;
        let now = looked.map(Observation::row);
        let holders = match now {
            Ok(Some(now)) => now.attachments.clone(),
            Ok(None) | Err(_) => row.attachments.clone(),
        };
        let names: Vec<_> = holders.iter().map(InstanceId::as_str).collect();
        let holders = match names.as_slice() {
            [] => "a node".to_owned(),
            names => format!("node {}", names.join(" and ")),
        };
        let disk = row.id.clone();
        if offline {
            Error::OnlyOffline {
                disk,
                holders,
                source,
            }
        } else {
            Error::NodeStopped {
                disk,
                holders,
                source,
            }
        }
    }

    /// Online wherever the cloud takes it: grown offline, an attached disk stays as small as it was
    /// for its guest, and one look may be of before the attachment. Offline is left for what neither
    /// the cloud nor the look knows as attached.
    async fn order_either(&self, deadline: Deadline, row: &Disk, size: Gib) -> api::Result<()> {
        let disk = &row.id;
        let mut is_free = row.is_free();
        loop {
            let outcome = self
                .order_growth(deadline, disk, size, ResizeMode::Online)
                .await;
            let Err(refusal) = outcome else {
                return Ok(());
            };
            if refusal.condition() == Condition::OnlyOffline {
                // The category says nothing of who holds the disk: only looks can tell.
                if !self.stays_free(deadline, disk).await {
                    return Err(refusal);
                }
            } else if refusal.condition() != Condition::DiskStatus {
                return Err(refusal);
            } else if !is_free {
                // It is on its way to a node or off it, or the look was of before it left.
                let rests = |seen: Observation<Disk>| match seen {
                    Observation::Row(row) if row.is_free() => Some(true),
                    Observation::Row(row) => (row.status == DiskStatus::InUse).then_some(false),
                    Observation::Missing { .. } => None,
                };
                match self.disks.until(disk, deadline, rests).await {
                    Ok(free) => is_free = free,
                    Err(_) => return Err(refusal),
                }
                continue;
            }
            return self
                .order_growth(deadline, disk, size, ResizeMode::Offline)
                .await;
        }
    }

    /// Whether looks show the disk free for as long as they may be old.
    async fn stays_free(&self, deadline: Deadline, disk: &DiskId) -> bool {
        let mut free = StaleReadGuard::default();
        let stays = |seen: Observation<Disk>| match seen {
            Observation::Row(row) if row.is_free() => free.holds(LAG).then_some(true),
            Observation::Row(_) | Observation::Missing { .. } => Some(false),
        };
        let waited = self.disks.until(disk, deadline, stays).await;
        waited.unwrap_or(false)
    }

    /// One order. Growing to the same size twice does no harm, so one that was refused, and may have
    /// used its token up, is simply followed by another token.
    async fn order_growth(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        size: Gib,
        mode: ResizeMode,
    ) -> api::Result<()> {
        let word = match mode {
            ResizeMode::Online => "online",
            ResizeMode::Offline => "offline",
        };
        let trail = &self.attempts;
        let mut again = true;
        loop {
            let refused = trail.of(disk.as_str()).refused.to_string();
            let parts = [disk.as_str(), &size.0.to_string(), word, &refused];
            let request = ResizeDisk {
                disk: disk.clone(),
                size,
                mode,
                token: ClientToken::derive("ResizeDisk", parts),
            };
            let outcome = self.ecs.resize_disk(deadline, &request).await;
            let Err(error) = &outcome else {
                return outcome;
            };
            let used_up = error.kind() == Kind::TokenMismatch;
            if used_up || is_final(error) {
                trail.note(disk.as_str(), |past| past.refused += 1);
            }
            if !(used_up && std::mem::take(&mut again)) {
                return outcome;
            }
        }
    }

    async fn wait_grown(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        size: Gib,
    ) -> std::result::Result<Disk, crate::cloud::view::WaitError> {
        let grown = |observation: Observation<Disk>| {
            let row = observation.row()?;
            (row.size >= size).then(|| Disk::clone(&row))
        };
        self.disks
            .until_done(disk, deadline, Operation::Resize, grown)
            .await
    }
}
