//! Growing a disk.

use std::sync::Arc;

use super::Result;
use super::attempts::{AttemptHistory, is_final};
use super::dependencies::Dependencies;
use super::error::{Error, cloud, refused, wait};
use super::read::read_disk;
use super::stale_read::{READ_LAG, StaleReadGuard};
use crate::base::Deadline;
use crate::cloud::EcsApi;
use crate::cloud::view::{Observation, Operation, Poller, WaitError};
use crate::cloud::{self, Condition, Kind, ResizeDisk, ResizeMode};
use crate::model::{ClientToken, Disk, DiskId, DiskStatus, Failure, Gib, SizeRange};

/// The largest disk of all: what a category that this driver does not know may grow to.
const LARGEST: Gib = Gib(65536);

#[derive(Debug)]
pub struct Resizer {
    ecs: Arc<dyn EcsApi>,
    disks: Arc<Poller<DiskId, Disk>>,
    attempts: AttemptHistory,
}

impl Resizer {
    pub(super) fn new(shared: &Dependencies) -> Self {
        Self {
            ecs: Arc::clone(&shared.ecs),
            disks: Arc::clone(&shared.disks),
            attempts: AttemptHistory::default(),
        }
    }

    /// Grows the disk to the smallest size that the request admits, unless it is that large, and
    /// returns what it is then.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when the disk is larger than the limit already, or its category does not sell such a size;
    /// [`Error::Refused`] when the disk does not grow while its nodes hold it.
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
        match self.order_either(deadline, &row, size).await {
            Ok(()) => self.attempts.note(disk.as_str(), |past| past.refused = 0),
            // It has that size already: an earlier call resized it, and the read was stale.
            Err(error) if error.condition() == Condition::NotLarger => {}
            Err(error) if error.condition() == Condition::SizeUnavailable => {
                return Err(refuse(format!("{}: {error}", row.category)));
            }
            Err(error) => return Err(self.refused(deadline, &row, error).await),
        }
        let grown = |seen: Observation<Disk>| match seen {
            Observation::Row(row) if row.size >= size => Some(Disk::clone(&row)),
            _ => None,
        };
        let waited = self
            .disks
            .wait_until_done(
                disk,
                deadline,
                Operation::Resize.for_category(&row.category),
                grown,
            )
            .await;
        let step = format!("resize disk {disk} from {} to {size}", row.size);
        waited.map_err(wait(step))
    }

    /// The error for a refusal, with the nodes that hold the disk now.
    async fn refused(&self, deadline: Deadline, row: &Disk, source: cloud::Error) -> Error {
        let disk = &row.id;
        if ![Condition::OfflineExpansionOnly, Condition::NodeStopped].contains(&source.condition())
        {
            return cloud(format!("resize disk {disk}"))(source);
        }
        let now = self.disks.observe(&row.id, deadline).await;
        let now = now.ok().and_then(Observation::row);
        let holders = match now.as_deref().unwrap_or(row).holders() {
            none if none.is_empty() => "a node".to_owned(),
            holders => format!("node {holders}"),
        };
        let (failure, why) = match source.condition() {
            Condition::OfflineExpansionOnly => (
                Failure::OfflineExpansionOnly,
                format!("it is attached to {holders}"),
            ),
            _ => (Failure::NodeStopped, format!("{holders} does not run")),
        };
        let text = format!("disk {disk} does not grow while {why}");
        refused(failure, text, source)
    }

    /// Online wherever the cloud accepts it: expanded offline, an attached disk keeps its size for the guest, and the row
    /// may be from before the attachment. Offline is for disks that neither the cloud nor the row shows attached.
    async fn order_either(&self, deadline: Deadline, row: &Disk, size: Gib) -> cloud::Result<()> {
        let disk = &row.id;
        let mut is_free = row.is_free();
        loop {
            let online = self.order_growth(deadline, disk, size, ResizeMode::Online);
            let Err(refusal) = online.await else {
                return Ok(());
            };
            let offline = match refusal.condition() {
                Condition::DiskStatus if is_free => true,
                // The category says nothing of who holds the disk; or it is being attached or detached, or the row is from
                // before it was detached.
                condition @ (Condition::OfflineExpansionOnly | Condition::DiskStatus) => {
                    match self.is_free_at_rest(deadline, disk).await {
                        Ok(false) if condition == Condition::DiskStatus => {
                            is_free = false;
                            continue;
                        }
                        Ok(free) => free,
                        Err(_) => false,
                    }
                }
                _ => false,
            };
            if !offline {
                return Err(refusal);
            }
            let offline = self.order_growth(deadline, disk, size, ResizeMode::Offline);
            return offline.await;
        }
    }

    /// Waits until the disk is in use, or free for as long as reads may be old, and says whether it is free.
    async fn is_free_at_rest(
        &self,
        deadline: Deadline,
        disk: &DiskId,
    ) -> std::result::Result<bool, WaitError> {
        let mut free = StaleReadGuard::default();
        let rests = |seen: Observation<Disk>| {
            let row = seen.row()?;
            if row.is_free() {
                return free.holds(READ_LAG).then_some(true);
            }
            free.ends();
            (row.status == DiskStatus::InUse).then_some(false)
        };
        self.disks.wait_until(disk, deadline, rests).await
    }

    /// One order. Growing to the same size twice does no harm, so a refused one, which may have used its token up, is
    /// followed by another token.
    async fn order_growth(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        size: Gib,
        mode: ResizeMode,
    ) -> cloud::Result<()> {
        let word = format!("{mode:?}");
        let mut is_repeated = false;
        loop {
            let refused = self.attempts.of(disk.as_str()).refused.to_string();
            let parts = [disk.as_str(), &size.0.to_string(), &word, &refused];
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
                self.attempts.note(disk.as_str(), |past| past.refused += 1);
            }
            if is_repeated || !used_up {
                return outcome;
            }
            is_repeated = true;
        }
    }
}
