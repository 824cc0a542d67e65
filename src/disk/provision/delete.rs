//! Deleting a disk that is ours and that nobody holds.

use super::Provisioner;
use crate::base::Deadline;
use crate::cloud::view::{Presence, WaitError};
use crate::cloud::{self, Kind};
use crate::disk::Result;
use crate::disk::error::{cloud, refused, wait};
use crate::disk::pauses::Pauses;
use crate::model::{Disk, DiskId, Failure, tag};

impl Provisioner {
    /// Deletes the disk. One that is not there is success.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::disk::Error::Refused) for one that is attached or not ours, when nothing was done.
    pub async fn delete(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        self.delete_row(deadline, disk).await?;
        self.journal.disks.deleted(disk);
        Ok(())
    }

    async fn delete_row(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        let (mut refusal, mut pauses) = (None, Pauses::default());
        let mut free = self.journal.free.take(disk);
        loop {
            let tags = match free.take() {
                Some(tags) => tags,
                None => match self.free_row(deadline, disk, refusal.take()).await? {
                    Presence::Row(row) => row.tags.clone(),
                    Presence::Absent(proof) => {
                        self.disks.record_absent(disk, proof);
                        return Ok(());
                    }
                },
            };
            self.owner.require(&format!("disk {disk}"), &tags)?;
            if tags.contains_key(tag::CLONE_OF)
                && let Some(name) = tags.get(tag::CSI_NAME)
            {
                self.end_clone(deadline, name).await?;
            }
            let outcome = self.ecs.delete_disk(deadline, disk).await;
            match self.creator.deleted(disk, outcome) {
                Ok(()) => return Ok(()),
                // Still loading from its snapshot, or detaching: poll again later.
                Err(error) if error.kind() == Kind::Conflict => {
                    match pauses.pause(deadline).await {
                        Ok(()) => refusal = Some(error),
                        Err(_) => return Err(cloud(step(disk))(error)),
                    }
                }
                Err(error) => return Err(cloud(step(disk))(error)),
            }
        }
    }

    /// The disk, which no node holds and which is this cluster's.
    async fn free_row(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        refusal: Option<cloud::Error>,
    ) -> Result<Presence<Disk>> {
        // A read of before it was detached would refuse what is permitted.
        let free = |row: &Disk| row.attachments.is_empty();
        let found = self.disks.confirm_state(disk, deadline, free).await;
        let found = found.map_err(|error| match (error, refusal) {
            // Why it was not deleted so far explains more than that the deadline has passed.
            (WaitError::Deadline { .. }, Some(refusal)) => cloud(step(disk))(refusal),
            (error, _) => wait(format!("read disk {disk} before deleting it"))(error),
        })?;
        if let Presence::Row(row) = &found {
            self.owner.require(&format!("disk {disk}"), &row.tags)?;
            if !row.attachments.is_empty() {
                let holders = row.holders();
                let text = format!("disk {disk} is not deleted: it is attached to {holders}");
                return Err(refused(Failure::DiskStillAttached, text, None));
            }
        }
        Ok(found)
    }
}

fn step(disk: &DiskId) -> String {
    format!("delete disk {disk}")
}
