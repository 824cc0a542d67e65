use std::sync::Arc;

use ecs::Kind;
use ecs::poll::{OVERDUE, WaitError};
use tokio::time::Instant;

use super::Provisioner;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::backoff::Backoff;
use crate::disk::error::{cloud, rejected, wait};
use crate::disk::evidence::names_missing;
use crate::model::{Disk, DiskId, Failure, tag};

impl Provisioner {
    /// Deletes the disk, after a snapshot if a tag of it requests one; succeeds if it does not exist. Fails if it is
    /// attached or not owned by this cluster.
    pub async fn delete(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        self.delete_row(deadline, disk).await?;
        self.shared.journal.disks.record_deleted(disk);
        Ok(())
    }

    async fn delete_row(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        let (mut rejection, mut backoff, began) = (None, Backoff::default(), Instant::now());
        let mut free = self.shared.journal.take_free(disk);
        loop {
            let key = self.shared.disks.key();
            // Without a response to an earlier deletion, the next one shows whether the disk still exists.
            if !self.shared.disks.is_deletion_lost(disk) {
                let tags = match free.take() {
                    Some(tags) => tags,
                    None => match self.free_row(deadline, disk, rejection.take()).await? {
                        Some(row) => row.tags.clone(),
                        None => return Ok(()),
                    },
                };
                self.shared.owner.check_owned(&format!("disk {disk}"), &tags)?;
                if tags.contains_key(tag::CLONE_OF)
                    && let Some(name) = tags.get(tag::CSI_NAME)
                {
                    self.clean_up_clone(deadline, name).await?;
                }
                if tags.contains_key(tag::DELETION_SNAPSHOT_DAYS) {
                    self.snapshot_before_deletion(deadline, disk, began).await?;
                }
            }
            let call = self.shared.ecs.delete_disk(deadline, disk);
            match self.shared.disks.delete(disk, key, call).await {
                // Unless the access key has changed since the disk was read.
                Ok(()) if self.shared.disks.is_absent(disk) => return Ok(()),
                Ok(()) => {}
                // The next read proves it, or the row is stale, or the index that this call uses lags.
                Err(error) if names_missing(&error) => {
                    if !self.shared.disks.is_absent(disk) && backoff.wait(deadline).await.is_err() {
                        let unproven = self.shared.disks.unproven(disk, true);
                        return Err(wait(step(disk))(unproven));
                    }
                }
                // The disk is loading from its snapshot, or detaching: retry later.
                Err(error) if error.kind() == Kind::Conflict => {
                    if began.elapsed() >= OVERDUE || backoff.wait(deadline).await.is_err() {
                        return Err(cloud(step(disk))(error));
                    }
                    rejection = Some(error);
                }
                Err(error) => return Err(cloud(step(disk))(error)),
            }
        }
    }

    /// The disk; `None` if it does not exist. Fails if a node holds it or this cluster does not own it.
    pub(super) async fn free_row(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        rejection: Option<ecs::Error>,
    ) -> Result<Option<Arc<Disk>>> {
        // A read older than a detach would wrongly reject the deletion.
        let free = |row: &Disk| row.attachments.is_empty();
        let found = self.shared.disks.confirm_state(deadline, disk, free).await;
        let found = found.map_err(|error| match (error, rejection) {
            // The last rejection explains more than a timeout.
            (WaitError::Deadline { .. }, Some(rejection)) => cloud(step(disk))(rejection),
            (error, _) => wait(format!("read disk {disk} before deleting it"))(error),
        })?;
        if let Some(row) = &found {
            self.shared.owner.check_owned(&format!("disk {disk}"), &row.tags)?;
            if !row.attachments.is_empty() {
                let holders = row.holders();
                let text = format!("disk {disk} is not deleted: it is attached to {holders}");
                return Err(rejected(Failure::DiskStillAttached, text, None));
            }
        }
        Ok(found)
    }
}

fn step(disk: &DiskId) -> String {
    format!("delete disk {disk}")
}
