//! Cloning a disk by way of an intermediate snapshot.
//!
//! The snapshot has the name of the volume that is created from it in a tag, so that every later call finds it: a repeated
//! creation continues with it and deletes it once the disk exists; so does the deletion of the clone. Otherwise the cloud
//! deletes it after a day.

use super::Provisioner;
use super::create::at_least;
use super::place::choose;
use crate::base::Deadline;
use crate::cloud::Kind;
use crate::cloud::view::Operation;
use crate::disk::error::{Error, cloud, wait};
use crate::disk::owned::Owned;
use crate::disk::read::read;
use crate::disk::snapshot::{self, NewSnapshot, Purpose};
use crate::disk::{NewDisk, Result};
use crate::model::{Disk, DiskId, Snapshot, SnapshotId, SnapshotStatus, Tags, tag};

/// Retention of the temporary snapshot in days, longer than any creation of a disk.
const RETENTION_DAYS: u32 = 1;

impl Provisioner {
    /// The disk of this name with the content of `source`, created unless it exists.
    ///
    /// # Errors
    /// As of creating a disk and of taking a snapshot; [`Error::NoSuchDisk`] without the source. The
    /// error of taking away the snapshot, so that the call is repeated until that is done too.
    pub async fn create_clone(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        source: &DiskId,
    ) -> Result<Disk> {
        let new = NewDisk {
            clone_of: Some(source.clone()),
            ..new.clone()
        };
        match self.create(deadline, &new).await {
            Ok(disk) => {
                if let Some(image) = &disk.source_snapshot {
                    self.drop_image(deadline, image).await?;
                }
                Ok(disk)
            }
            Err(error) if !error.failure_kind().is_final() => Err(error),
            Err(error) => {
                let wanted = image_of(&new, source);
                // The caller may never come back with this name.
                if let Some(image) = self.snapshots.created(&wanted)
                    && self.drop_image(deadline, &image).await.is_ok()
                {
                    self.snapshots.forget(&wanted, &image);
                }
                Err(match error {
                    Error::NoSuchSnapshot { snapshot } => snapshot_lost(&snapshot),
                    error => error,
                })
            }
        }
    }

    /// The request for a disk from a snapshot of the source that is ready, or for a blank one where
    /// the source is blank for certain.
    pub(super) async fn with_image(
        &self,
        deadline: Deadline,
        mut new: NewDisk,
        source: &DiskId,
    ) -> Result<NewDisk> {
        let wanted = image_of(&new, source);
        let taken = match read(&self.disks, deadline, source).await? {
            // Deleted since its snapshot was taken, which suffices.
            None => {
                let found = self.snapshots.find(deadline, &wanted).await?;
                let disk = source.clone();
                found.ok_or(Error::NoSuchDisk { disk })?
            }
            Some(row) => {
                new.size = at_least(&new, row.size, &format!("disk {source} has"))?;
                // What no category can hold needs no snapshot.
                choose(&new)?;
                match self.snapshots.create(deadline, &wanted).await {
                    // Never attached, so never written, and not made from anything: it is blank, and so is a new disk.
                    Err(Error::NeverAttached { .. }) if is_blank(&row) => {
                        tracing::info!(disk.id = %source, "it was never written to; its clone is blank");
                        return Ok(new);
                    }
                    // The token may still tell a refusal of the time before: the next one is another.
                    Err(Error::NeverAttached { .. }) if was_attached(&row) => {
                        self.snapshots.create(deadline, &wanted).await?.id
                    }
                    taken => taken?.id,
                }
            }
        };
        self.image_ready(deadline, &wanted, &taken).await?;
        new.snapshot = Some(taken);
        Ok(new)
    }

    async fn image_ready(
        &self,
        deadline: Deadline,
        wanted: &NewSnapshot,
        id: &SnapshotId,
    ) -> Result<()> {
        let ready = |row: &Snapshot| match row.status {
            SnapshotStatus::Failed => Some(false),
            _ => row.available.then_some(true),
        };
        let mut call = self.snapshots.call(wanted);
        let (creator, operation) = (&self.snapshots.creator, Operation::SnapshotAvailable);
        let waited = creator.until_created(deadline, &mut call, id, Some(operation.into()), ready);
        let step = format!("see snapshot {id} become usable");
        match waited.await.map_err(wait(step))? {
            Some(true) => return Ok(()),
            Some(false) => {
                self.drop_image(deadline, id).await?;
                self.snapshots.forget(wanted, id);
            }
            None => {}
        }
        Err(snapshot_lost(id))
    }

    pub(super) async fn end_clone(&self, deadline: Deadline, volume: &str) -> Result<()> {
        let tags = self.owner.clone_tags(volume);
        let page = Snapshot::page(self.ecs.as_ref(), deadline, tags, None).await;
        let page = page.map_err(cloud("list the snapshots of clones"))?;
        for row in page.rows {
            self.drop_image(deadline, &row.id).await?;
        }
        Ok(())
    }

    /// Deletes the snapshot of a clone that is made. One that the cloud still needs stays for a later call.
    async fn drop_image(&self, deadline: Deadline, id: &SnapshotId) -> Result<()> {
        match self.snapshots.delete_once(deadline, id).await {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == Kind::Conflict => {
                tracing::warn!(
                    snapshot.id = %id,
                    cloud.code = error.code(),
                    "the snapshot of a clone is still needed; it goes later, within a day"
                );
                Ok(())
            }
            Err(error) => Err(cloud(format!("delete snapshot {id} of a clone"))(error)),
        }
    }
}

/// The snapshot that the clone is made from.
fn image_of(new: &NewDisk, source: &DiskId) -> NewSnapshot {
    NewSnapshot {
        name: new.name.clone(),
        source: source.clone(),
        retention_days: Some(RETENTION_DAYS),
        resource_group: None,
        tags: Tags::new(),
        purpose: Purpose::Clone,
    }
}

fn was_attached(row: &Disk) -> bool {
    row.attached.is_some() || row.detached.is_some() || !row.attachments.is_empty()
}

/// Whether the disk cannot have data. Its source may no longer exist.
fn is_blank(row: &Disk) -> bool {
    !was_attached(row) && row.source_snapshot.is_none() && !row.tags.contains_key(tag::CLONE_OF)
}

fn snapshot_lost(snapshot: &SnapshotId) -> Error {
    let next = "it was taken for a clone; another one is taken with the next call";
    snapshot::failed(snapshot, next)
}
