//! Growing a disk.

use super::error::{Error, cloud, wait};
use super::{Disks, Result};
use crate::base::Deadline;
use crate::cloud::poll::Seen;
use crate::cloud::{Kind, ResizeDisk, ResizeMode};
use crate::model::{ClientToken, Disk, DiskId, DiskStatus, Gib, SizeRange};

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
        let request = ResizeDisk {
            disk: disk.clone(),
            size,
            mode,
            token: ClientToken::derive("ResizeDisk", [disk.as_str(), &size.0.to_string()]),
        };
        match self.ecs.resize_disk(deadline, &request).await {
            Ok(()) => {}
            // An earlier call may have done it meanwhile; the look below tells.
            Err(error) if error.kind() == Kind::TokenMismatch => {}
            Err(error) => return Err(cloud(step())(error)),
        }
        self.wait_grown(deadline, disk, size)
            .await
            .map_err(wait(step()))
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
