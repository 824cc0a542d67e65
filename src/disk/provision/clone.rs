//! Clones a disk through a temporary snapshot.
//!
//! A tag of the snapshot has the name of the new volume, so that later calls find it: a repeated create continues with
//! it and deletes it once the disk exists; so does the deletion of the clone. A final error deletes it too, except a
//! stock-out, after which the provisioner retries in another zone. Otherwise, the cloud deletes it after a day.

use ecs::Kind;
use ecs::poll::Operation;

use super::Provisioner;
use super::candidates::select_candidates;
use super::create::at_least;
use crate::base::Deadline;
use crate::disk::error::{Error, cloud, wait};
use crate::disk::owned::OwnedResource;
use crate::disk::read::read;
use crate::disk::snapshot::{self, NewSnapshot, SnapshotPurpose};
use crate::disk::{NewDisk, Result};
use crate::model::{Disk, DiskId, Failure, Snapshot, SnapshotId, SnapshotStatus, Tags, tag};

/// Retention of the temporary snapshot in days, longer than any create.
const RETENTION_DAYS: u32 = 1;

impl Provisioner {
    /// Creates the disk of this name with the content of `source`, unless it exists.
    ///
    /// # Errors
    /// [`Error::NoSuchDisk`] if the source does not exist. Also if the deletion of the temporary snapshot should be
    /// retried.
    pub async fn create_clone(&self, deadline: Deadline, new: &NewDisk, source: &DiskId) -> Result<Disk> {
        let new = NewDisk {
            clone_of: Some(source.clone()),
            ..new.clone()
        };
        match self.create(deadline, &new).await {
            Ok(disk) => {
                if let Some(snapshot) = &disk.source_snapshot {
                    self.delete_snapshot(deadline, snapshot).await?;
                }
                Ok(disk)
            }
            Err(error) if !error.failure_kind().is_final() => Err(error),
            // Each retry would take and delete a snapshot of the whole source.
            Err(error @ Error::OutOfStock { .. }) => Err(error),
            Err(error) => {
                let call = self.snapshots.call(&temporary_snapshot(&new, source));
                // The caller may never retry.
                if let Some(snapshot) = self.snapshots.creator.created(&call)
                    && self.delete_snapshot(deadline, &snapshot).await.is_ok()
                {
                    self.snapshots.creator.forget(&call, &snapshot);
                }
                Err(match error {
                    Error::NoSuchSnapshot { snapshot } => snapshot_lost(&snapshot),
                    error => error,
                })
            }
        }
    }

    /// The request with a ready snapshot of the source, or without one if the source is certainly blank.
    pub(super) async fn with_temporary_snapshot(
        &self,
        deadline: Deadline,
        mut new: NewDisk,
        source: &DiskId,
    ) -> Result<NewDisk> {
        let wanted = temporary_snapshot(&new, source);
        let taken = match read(&self.shared.disks, deadline, source).await? {
            // The source was deleted after its snapshot was created, which is sufficient.
            None => {
                let call = self.snapshots.call(&wanted);
                let found = self.snapshots.creator.find_by_tags(deadline, &call).await?;
                let disk = source.clone();
                found.ok_or(Error::NoSuchDisk { disk })?
            }
            Some(row) => {
                new.size = at_least(&new, row.size, &format!("disk {source} has"))?;
                // Fails before the snapshot is created if no category supports the size.
                select_candidates(&new)?;
                match self.snapshots.create(deadline, &wanted).await {
                    // Never attached, so never written, and without a source: the disk is blank, as a new disk is.
                    Err(Error::NeverAttached { .. }) if is_blank(&row) => {
                        tracing::info!(disk.id = %source, "the source was never attached, so its clone is blank");
                        return Ok(new);
                    }
                    // The token may repeat a rejection from before the first attach: the retry uses another token.
                    Err(Error::NeverAttached { .. }) if was_attached(&row) => {
                        self.snapshots.create(deadline, &wanted).await?.id
                    }
                    taken => taken?.id,
                }
            }
        };
        let operation = Operation::SnapshotAvailable;
        self.wait_snapshot(deadline, &wanted, &taken, operation, |row| row.available)
            .await?;
        new.snapshot = Some(taken);
        Ok(new)
    }

    /// Waits for this state of the snapshot. If it failed, it is deleted.
    pub(super) async fn wait_snapshot(
        &self,
        deadline: Deadline,
        wanted: &NewSnapshot,
        id: &SnapshotId,
        operation: Operation,
        is_ready: fn(&Snapshot) -> bool,
    ) -> Result<()> {
        let ready = |row: &Snapshot| match row.status {
            SnapshotStatus::Failed => Some(false),
            _ => is_ready(row).then_some(true),
        };
        let call = self.snapshots.call(wanted);
        let creator = &self.snapshots.creator;
        let waited = creator.wait_created(deadline, &call, id, Some(operation.into()), ready);
        let step = format!("complete snapshot {id}");
        match waited.await.map_err(wait(step))? {
            Some(true) => return Ok(()),
            Some(false) => {
                self.delete_snapshot(deadline, id).await?;
                creator.forget(&call, id);
            }
            None => {}
        }
        Err(snapshot_lost(id))
    }

    pub(super) async fn clean_up_clone(&self, deadline: Deadline, volume: &str) -> Result<()> {
        let tags = self.shared.owner.clone_tags(volume);
        let page = Snapshot::list_page(self.shared.ecs.as_ref(), deadline, tags, None).await;
        let page = page.map_err(cloud("list the snapshots of clones"))?;
        for row in page.rows {
            self.delete_snapshot(deadline, &row.id).await?;
        }
        Ok(())
    }

    /// Deletes a snapshot of the driver. If the cloud refuses, no volume is affected: the snapshot has a retention.
    async fn delete_snapshot(&self, deadline: Deadline, id: &SnapshotId) -> Result<()> {
        match self.snapshots.delete_once(deadline, id).await {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == Kind::Conflict || Failure::from(&error).kind().is_final() => {
                tracing::warn!(
                    snapshot.id = %id,
                    cloud.code = error.code(),
                    cloud.request_id = error.request_id(),
                    "cannot delete the snapshot now; the cloud deletes it at the end of its retention"
                );
                Ok(())
            }
            Err(error) => Err(cloud(format!("delete snapshot {id}"))(error)),
        }
    }
}

fn temporary_snapshot(new: &NewDisk, source: &DiskId) -> NewSnapshot {
    NewSnapshot {
        name: new.name.clone(),
        source: source.clone(),
        retention_days: Some(RETENTION_DAYS),
        resource_group: None,
        tags: Tags::new(),
        purpose: SnapshotPurpose::Clone,
    }
}

pub(super) fn was_attached(row: &Disk) -> bool {
    row.attached.is_some() || row.detached.is_some() || !row.attachments.is_empty()
}

/// Whether the disk cannot have data. Its source may no longer exist.
fn is_blank(row: &Disk) -> bool {
    !was_attached(row) && row.source_snapshot.is_none() && !row.tags.contains_key(tag::CLONE_OF)
}

fn snapshot_lost(snapshot: &SnapshotId) -> Error {
    snapshot::failed(snapshot, "the next call creates another")
}
