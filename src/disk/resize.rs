//! Growing a disk.

use super::error::{Error, cloud, wait};
use super::trail::is_final;
use super::{Disks, Result};
use crate::base::Deadline;
use crate::cloud::poll::Seen;
use crate::cloud::{self as api, Kind, ResizeDisk, ResizeMode};
use crate::model::{ClientToken, Disk, DiskId, DiskStatus, Gib, SizeRange};

/// By these the cloud says that the disk is that large already.
const NOT_LARGER: [&str; 2] = ["InvalidDiskSize", "InvalidDiskSize.TooSmall"];

impl Disks {
    /// Grows the disk to the smallest size that the request admits, unless it is that large, and
    /// returns what it is then.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] when the disk is larger than the limit already, or its category does
    /// not sell such a size.
    pub async fn resize(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        wanted: SizeRange,
    ) -> Result<Disk> {
        let row = self.disk(deadline, disk).await?;
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
        let sizes = row.category.sizes();
        let sizes = sizes.ok_or_else(|| refuse(format!("{} is not resized", row.category)))?;
        let size = wanted.resolve(sizes);
        let size = size.map_err(|refused| refuse(format!("{}: {refused}", row.category)))?;
        let mode = match row.status {
            DiskStatus::InUse => ResizeMode::Online,
            DiskStatus::Creating
            | DiskStatus::Available
            | DiskStatus::Attaching
            | DiskStatus::Detaching
            | DiskStatus::ReIniting
            | DiskStatus::Unknown(_) => ResizeMode::Offline,
        };
        let step = || format!("resize disk {disk} from {} to {size}", row.size);
        let mut outcome = self.order_growth(deadline, disk, size, mode).await;
        if outcome
            .as_ref()
            .is_err_and(|e| e.kind() == Kind::TokenMismatch)
        {
            // It was used while the disk was attached and now is not, or the other way round.
            outcome = self.order_growth(deadline, disk, size, mode).await;
        }
        match outcome {
            Ok(()) => self
                .trails
                .growths
                .note(disk.as_str(), |past| past.refused = 0),
            // It is that large already: an earlier call did it, and the look was of before.
            Err(error) if error.code().is_some_and(|code| NOT_LARGER.contains(&code)) => {}
            Err(error) => return Err(cloud(step())(error)),
        }
        self.wait_grown(deadline, disk, size)
            .await
            .map_err(wait(step()))
    }

    /// One call. Growing to the same size twice does no harm, so one that was refused, and may have
    /// used its token up, is simply followed by another token.
    async fn order_growth(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        size: Gib,
        mode: ResizeMode,
    ) -> api::Result<()> {
        let refused = self.trails.growths.of(disk.as_str()).refused.to_string();
        let parts = [disk.as_str(), &size.0.to_string(), &refused];
        let request = ResizeDisk {
            disk: disk.clone(),
            size,
            mode,
            token: ClientToken::derive("ResizeDisk", parts),
        };
        let outcome = self.ecs.resize_disk(deadline, &request).await;
        if let Err(error) = &outcome
            && (is_final(error) || error.kind() == Kind::TokenMismatch)
        {
            self.trails
                .growths
                .note(disk.as_str(), |past| past.refused += 1);
        }
        outcome
    }

    async fn wait_grown(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        size: Gib,
    ) -> std::result::Result<Disk, crate::cloud::poll::WaitError> {
        let grown = |seen: Seen<Disk>| match seen {
            Seen::Row(row) => (row.size >= size).then(|| Disk::clone(&row)),
            Seen::Nothing | Seen::Failed(_) => None,
        };
        self.disks.until(disk, deadline, grown).await
    }
}
