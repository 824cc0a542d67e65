//! Creating a disk, blank or from a snapshot.

use super::place::choose;
use super::{Provisioner, compare};
use crate::base::Deadline;
use crate::cloud::view::{Operation, OperationKind};
use crate::disk::create_once::Call;
use crate::disk::error::{Error, refused, wait};
use crate::disk::read::read_as;
use crate::disk::{NewDisk, Result};
use crate::model::{Disk, DiskId, DiskStatus, Failure, Gib, SizeRange, Snapshot};

impl Provisioner {
    /// The disk of this name, created unless it exists, and `Available` or beyond.
    ///
    /// # Errors
    /// [`Error::Exists`] when the name belongs to a disk that differs; [`Error::OutOfStock`] when
    /// nothing of what is wanted can be had; [`Error::OutOfRange`] when nothing has that size.
    /// [`Error::CreationUnresolved`] instead of any final error as long as an earlier attempt may have created the disk.
    pub async fn create(&self, deadline: Deadline, new: &NewDisk) -> Result<Disk> {
        let tags = self.owner.tags_of(&new.name);
        let mut call = self.creator.call(&new.name, tags);
        let outcome = self.find_or_create(deadline, new, &mut call).await;
        self.creator
            .conclude(deadline, &call, |disk| &disk.id, outcome)
            .await
    }

    async fn find_or_create(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        call: &mut Call,
    ) -> Result<Disk> {
        loop {
            if let Some(disk) = self.find_created(deadline, new, call).await? {
                return Ok(disk);
            }
            let (id, operation) = match self.with_source(deadline, new).await {
                // Gone by now, perhaps after it served an earlier call of this very name.
                Err(error @ (Error::NoSuchSnapshot { .. } | Error::NoSuchDisk { .. })) => {
                    let found = self.creator.after_refusal(deadline, call).await?;
                    (found.ok_or(error)?, None)
                }
                sized => {
                    let new = sized?;
                    let choice = choose(&new)?;
                    let created = self.create_in_zone(deadline, &new, &choice, call);
                    let (id, category) = created.await?;
                    (id, Some(Operation::Create.for_category(&category)))
                }
            };
            if let Some(disk) = self.completed(deadline, new, call, &id, operation).await? {
                return Ok(disk);
            }
        }
    }

    pub(super) async fn find_created(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        call: &mut Call,
    ) -> Result<Option<Disk>> {
        match self.creator.earlier(deadline, call).await? {
            Some(id) => self.completed(deadline, new, call, &id, None).await,
            None => Ok(None),
        }
    }

    /// The disk once it is no longer `Creating`, if it matches; none if it is proven to be deleted.
    async fn completed(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        call: &mut Call,
        id: &DiskId,
        operation: Option<OperationKind>,
    ) -> Result<Option<Disk>> {
        let made = |row: &Disk| (row.status != DiskStatus::Creating).then(|| row.clone());
        let creator = &self.creator;
        let waited = creator.until_created(deadline, call, id, operation, made);
        let step = format!("see disk {id} become Available");
        let Some(disk) = waited.await.map_err(wait(step))? else {
            return Ok(None);
        };
        if let Some(differences) = compare::disk(&disk, new) {
            return Err(Error::Exists {
                name: new.name.clone(),
                existing: format!("disk {id}"),
                differences,
            });
        }
        self.journal.disks.created(id, &disk);
        self.journal.note_category(&disk);
        Ok(Some(disk))
    }

    /// The request with its snapshot, and the source's size as its least.
    async fn with_source(&self, deadline: Deadline, new: &NewDisk) -> Result<NewDisk> {
        let mut new = new.clone();
        if let Some(source) = new.clone_of.clone() {
            new = self.with_image(deadline, new, &source).await?;
        }
        let Some(id) = &new.snapshot else {
            return Ok(new);
        };
        // The caller waited until the snapshot was ready.
        let ready = |row: &Snapshot| row.available;
        let row = read_as(&self.snapshots.creator.rows, deadline, id, ready).await?;
        let snapshot = row.ok_or_else(|| Error::NoSuchSnapshot {
            snapshot: id.clone(),
        })?;
        // The cloud creates only encrypted disks from it, and the request does not require an unencrypted one.
        new.encrypted |= snapshot.encrypted;
        if !snapshot.available {
            let text = format!("snapshot {id} is not ready to be used yet");
            return Err(refused(Failure::SnapshotNotReady, text, None));
        }
        new.size = at_least(&new, snapshot.source_size, &format!("snapshot {id} needs"))?;
        Ok(new)
    }
}

/// The sizes of a disk with a source, not below the source's size.
pub(super) fn at_least(new: &NewDisk, source: Gib, why: &str) -> Result<SizeRange> {
    let least = source.bytes();
    let SizeRange { required, limit } = new.size;
    if limit.is_some_and(|limit| limit < least) {
        return Err(Error::OutOfRange {
            name: new.name.clone(),
            reasons: format!("{why} {source}, wanted {}", new.size),
        });
    }
    Ok(SizeRange {
        required: Some(required.unwrap_or_default().max(least)),
        limit,
    })
}
