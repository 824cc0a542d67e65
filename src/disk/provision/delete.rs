//! Deleting a disk that is ours and that nobody holds.

use super::Provisioner;
use crate::base::Deadline;
use crate::cloud::Kind;
use crate::cloud::view::WaitError;
use crate::disk::Result;
use crate::disk::back_off::BackOff;
use crate::disk::error::{Error, cloud, wait};
use crate::disk::stale_read::settled_as;
use crate::model::{Disk, DiskId, InstanceId, tag};

impl Provisioner {
    /// Deletes the disk. One that is not there is success.
    ///
    /// # Errors
    /// [`Error::StillAttached`] and [`Error::NotOurs`], when nothing was done.
    pub async fn delete(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        self.rid_of(deadline, disk).await?;
        self.journal.disks.gone(disk);
        self.journal.ephemeral.forget(disk);
        Ok(())
    }

    async fn rid_of(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        let step = || format!("delete disk {disk}");
        let (mut refusal, mut patience) = (None, BackOff::default());
        loop {
            // A look of before it was unpublished would refuse what may be done.
            let free = |row: &Disk| row.attachments.is_empty();
            let row = settled_as(&self.disks, disk, deadline, free).await;
            let row = match (row, refusal.take()) {
                (Ok(Some(row)), _) => row,
                (Ok(None), _) => return Ok(()),
                // Why it was not deleted so far tells more than that the time is up.
                (Err(WaitError::Deadline { .. }), Some(refusal)) => {
                    return Err(cloud(step())(refusal));
                }
                (Err(error), _) => {
                    let look = format!("look at disk {disk} before deleting it");
                    return Err(wait(look)(error));
                }
            };
            self.owner.require(format!("disk {disk}"), &row.tags)?;
            if !row.attachments.is_empty() {
                let holders: Vec<_> = row.attachments.iter().map(InstanceId::as_str).collect();
                let holders = holders.join(" and ");
                return Err(Error::StillAttached {
                    disk: disk.clone(),
                    holders,
                });
            }
            if row.tags.contains_key(tag::CLONE_OF)
                && let Some(name) = row.tags.get(tag::CSI_NAME)
            {
                self.end_clone(deadline, name).await?;
            }
            match self.ecs.delete_disk(deadline, disk).await {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == Kind::NotFound => return Ok(()),
                // Still loading from its snapshot, or on its way off a node: look again in a while.
                Err(error) if error.kind() == Kind::Conflict => {
                    match self.disks.until(disk, deadline, patience.looks()).await {
                        Ok(()) => refusal = Some(error),
                        Err(_) => return Err(cloud(step())(error)),
                    }
                }
                Err(error) => return Err(cloud(step())(error)),
            }
        }
    }
}
