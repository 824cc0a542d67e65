//! Expands a disk (CSI `ControllerExpandVolume`).

use std::time::Duration;

use ecs::poll::{Observation, Operation, PollMode, WaitError};
use ecs::{Condition, Kind, ResizeDisk, ResizeMode};

use super::Result;
use super::dependencies::Dependencies;
use super::error::{Error, cloud, rejected, wait};
use super::evidence::consumes_token;
use super::journal::TtlCache;
use super::read::read_disk;
use super::refusals::{MAX_REPEAT, Refusals};
use super::stale_read::{READ_LAG, StaleReadGuard};
use crate::base::Deadline;
use crate::model::{ClientToken, Disk, DiskId, DiskStatus, Failure, Gib, SizeRange};

/// Maximum size of a disk of an unknown category: the largest of all categories.
const MAX_SIZE: Gib = Gib(65536);

#[derive(Debug)]
pub struct Resizer {
    shared: Dependencies,
    /// The number of refused requests, each of which may have consumed its token.
    rejections: TtlCache<DiskId, u32>,
    refusals: Refusals<(DiskId, Gib)>,
}

/// How long the cloud certainly does not remember a token any longer.
const TOKEN_TTL: Duration = Duration::from_secs(48 * 3600);

impl Resizer {
    pub(super) fn new(shared: &Dependencies) -> Self {
        Self {
            shared: shared.clone(),
            rejections: TtlCache::default(),
            refusals: Refusals::default(),
        }
    }

    /// Expands the disk to the smallest size that satisfies the request, unless it is already large enough, and returns
    /// it.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if the disk exceeds the limit, or its category does not support the size;
    /// [`Error::Rejected`] if the disk cannot be expanded while it is attached.
    pub async fn resize(&self, deadline: Deadline, disk: &DiskId, wanted: SizeRange) -> Result<Disk> {
        let row = read_disk(&self.shared.disks, deadline, disk).await?;
        let reject = |reasons| Error::OutOfRange {
            name: disk.to_string(),
            reasons,
        };
        let required = wanted.required;
        if required.is_none_or(|required| row.size.bytes() >= required) {
            if wanted.admits(row.size) {
                return Ok(row);
            }
            return Err(reject(format!(
                "the disk has {}, wanted {wanted}, and disks cannot shrink",
                row.size
            )));
        }
        let sizes = row.category.sizes().unwrap_or(Gib(1)..=MAX_SIZE);
        let size = wanted.resolve(sizes);
        let size = size.map_err(|rejected| reject(format!("{}: {rejected}", row.category)))?;
        match self.send_resize(deadline, &row, size).await {
            Ok(()) => drop(self.rejections.remove(disk)),
            // The disk already has the size: an earlier call resized it, and the read was stale.
            Err(error) if error.condition() == Condition::NotLarger => {}
            Err(error) if error.condition() == Condition::SizeUnavailable => {
                return Err(reject(format!("{}: {error}", row.category)));
            }
            Err(error) => return Err(self.rejected(deadline, &row, error).await),
        }
        let grown = |observation: Observation<Disk>| match observation {
            Observation::Row(row) if row.size >= size => Some(Disk::clone(&row)),
            _ => None,
        };
        let (disks, operation) = (&self.shared.disks, Operation::Resize.for_category(&row.category));
        let waited = disks.wait_until_done(disk, deadline, operation, grown);
        let step = format!("resize disk {disk} from {} to {size}", row.size);
        waited.await.map_err(wait(step))
    }

    /// The error for a rejection, with the current nodes of the disk.
    async fn rejected(&self, deadline: Deadline, row: &Disk, source: ecs::Error) -> Error {
        let disk = &row.id;
        if ![Condition::OfflineExpansionOnly, Condition::NodeStopped].contains(&source.condition()) {
            return cloud(format!("resize disk {disk}"))(source);
        }
        let now = self.shared.disks.observe(&row.id, deadline).await;
        let now = now.ok().and_then(Observation::row);
        let holders = match now.as_deref().unwrap_or(row).holders() {
            holders if holders.is_empty() => "a node".to_owned(),
            holders => format!("node {holders}"),
        };
        let (failure, why) = match source.condition() {
            Condition::OfflineExpansionOnly => (Failure::OfflineExpansionOnly, format!("it is attached to {holders}")),
            _ => (Failure::NodeStopped, format!("{holders} is not running")),
        };
        let text = format!("disk {disk} cannot be expanded while {why}");
        rejected(failure, text, source)
    }

    /// Expands online if the cloud accepts it, because after an offline resize of an attached disk, the guest keeps
    /// the old size. Offline only if neither the cloud's response nor a row shows the disk attached.
    async fn send_resize(&self, deadline: Deadline, row: &Disk, size: Gib) -> ecs::Result<()> {
        let disk = &row.id;
        let order = (disk.clone(), size);
        let repeat_until = deadline.at_most(MAX_REPEAT);
        let (mut is_free, mut mode) = (row.is_free(), ResizeMode::Online);
        self.refusals.admit(deadline, &order).await?;
        loop {
            let Err(rejection) = self.send_mode(deadline, disk, size, mode).await else {
                return Ok(());
            };
            let condition = rejection.condition();
            mode = match (mode, condition) {
                (ResizeMode::Online, Condition::DiskStatus) if is_free => ResizeMode::Offline,
                // The category does not support online expansion, attached or not; or the disk is attaching or
                // detaching, or the row is older than a detach.
                (ResizeMode::Online, Condition::OfflineExpansionOnly | Condition::DiskStatus) => {
                    match self.wait_is_free(deadline, disk).await {
                        Ok(true) => ResizeMode::Offline,
                        Ok(false) if condition == Condition::DiskStatus => {
                            is_free = false;
                            let due = self.refusals.wait_due(repeat_until, &order).await;
                            due.map_err(|_| rejection)?;
                            ResizeMode::Online
                        }
                        Ok(false) | Err(_) => return Err(rejection),
                    }
                }
                // Another order is in progress, such as a change of the category, which can take hours.
                (_, Condition::Conflict) => {
                    let due = self.refusals.wait_due(repeat_until, &order).await;
                    due.map_err(|_| rejection)?;
                    match mode {
                        ResizeMode::Offline if !matches!(self.wait_is_free(repeat_until, disk).await, Ok(true)) => {
                            ResizeMode::Online
                        }
                        mode => mode,
                    }
                }
                _ => return Err(rejection),
            };
        }
    }

    /// Waits until the disk is in use or certainly free, and returns whether it is free.
    async fn wait_is_free(&self, deadline: Deadline, disk: &DiskId) -> std::result::Result<bool, WaitError> {
        let mut free = StaleReadGuard::default();
        let decide = |observation: Observation<Disk>| {
            let row = observation.row()?;
            if row.is_free() {
                return free.confirmed_after(READ_LAG).then_some(true);
            }
            free.reset();
            (row.status == DiskStatus::InUse).then_some(false)
        };
        self.shared
            .disks
            .wait_until(disk, deadline, PollMode::Change, decide)
            .await
    }

    /// Sends one resize request. A rejection may have consumed its token, so it is retried with another one: a resize
    /// to the same size is idempotent.
    async fn send_mode(&self, deadline: Deadline, disk: &DiskId, size: Gib, mode: ResizeMode) -> ecs::Result<()> {
        let mode_name = format!("{mode:?}");
        let mut is_repeated = false;
        loop {
            let rejections = self.rejections.get(disk).unwrap_or(0);
            let parts = [disk.as_str(), &size.0.to_string(), &mode_name, &rejections.to_string()];
            let request = ResizeDisk {
                disk: disk.clone(),
                size,
                mode,
                token: ClientToken::derive("ResizeDisk", parts),
            };
            let outcome = self.shared.ecs.resize_disk(deadline, &request).await;
            let order = (disk.clone(), size);
            let Err(error) = &outcome else {
                self.refusals.record_success(&order);
                return outcome;
            };
            self.refusals.record_refusal(&order, error);
            let is_consumed = error.kind() == Kind::TokenMismatch;
            if consumes_token(error) {
                self.rejections.insert(disk, TOKEN_TTL, rejections + 1);
            }
            if is_repeated || !is_consumed {
                return outcome;
            }
            is_repeated = true;
        }
    }
}
