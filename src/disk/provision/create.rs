//! Creating a disk, blank or from a snapshot.

use std::sync::Arc;

use super::place::choose;
use super::{Provisioner, compare};
use crate::base::Deadline;
use crate::cloud::view::Operation;
use crate::disk::created::until_created;
use crate::disk::error::{Error, wait};
use crate::disk::ownership_listing::Listed;
use crate::disk::stale_read::{NotFoundConfirmation, settled_as};
use crate::disk::{NewDisk, Result};
use crate::model::{Disk, DiskId, DiskStatus, Gib, SizeRange, Snapshot, tag};

impl Provisioner {
    /// The disk of this name, created unless it exists, and `Available` or beyond.
    ///
    /// # Errors
    /// [`Error::Exists`] when the name belongs to a disk that differs; [`Error::OutOfStock`] when
    /// nothing of what is wanted can be had; [`Error::OutOfRange`] when nothing has that size.
    /// [`Error::CreationUnresolved`] instead of any final error as long as an earlier attempt may have created the disk.
    pub async fn create(&self, deadline: Deadline, new: &NewDisk) -> Result<Disk> {
        let outcome = self.find_or_create(deadline, new).await;
        let id = |disk: &Disk| disk.id.to_string();
        self.attempts.conclude(&new.name, &new.name, id, outcome)
    }

    async fn find_or_create(&self, deadline: Deadline, new: &NewDisk) -> Result<Disk> {
        if let Some(id) = self.attempts.of(&new.name).created
            && let Ok(id) = id.parse()
            && let Some(disk) = self.completed(deadline, &id, new).await?
        {
            return Ok(disk);
        }
        let new = match self.sized_for_source(deadline, new).await {
            // Gone by now, perhaps after it served an earlier call of this very name.
            Err(Error::NoSuchSnapshot { snapshot }) => {
                let found = self.find_disk(deadline, &new.name).await?;
                let found = found.ok_or(Error::NoSuchSnapshot { snapshot })?;
                let adopted = self.adopt(deadline, &found, new).await?;
                return adopted.ok_or(Error::NoSuchDisk { disk: found.id });
            }
            sized => &sized?,
        };
        let choice = choose(new)?;
        let listed = self.listing.find(deadline, &new.name).await;
        let looked = listed == Listed::Unknown;
        let found = match listed {
            Listed::No => None,
            Listed::As(ids) => self.listed(deadline, &new.name, &ids).await?,
            Listed::Unknown => self.find_disk(deadline, &new.name).await?,
        };
        if let Some(found) = found
            && let Some(disk) = self.adopt(deadline, &found, new).await?
        {
            return Ok(disk);
        }
        loop {
            let id = self.buy(deadline, new, &choice, looked).await?;
            if let Some(disk) = self.completed(deadline, &id, new).await? {
                return Ok(disk);
            }
        }
    }

    /// The disk that has this name, by the ids of the listing. The oldest: whoever was answered first has that one.
    async fn listed(&self, deadline: Deadline, name: &str, ids: &[String]) -> Result<Option<Disk>> {
        let mut found = Vec::new();
        for id in ids.iter().filter_map(|id| id.parse().ok()) {
            let row = self.disks.settle(&id, deadline).await;
            let row = row
                .map_err(wait(format!("look at disk {id} of {name:?}")))?
                .row();
            // Two names may have the same hash.
            let has_name = |row: &Arc<Disk>| row.tags.get(tag::CSI_NAME).is_some_and(|n| n == name);
            found.extend(row.filter(has_name));
        }
        let oldest = found
            .into_iter()
            .min_by_key(|disk| (disk.created, disk.id.clone()));
        Ok(oldest.map(|row| Disk::clone(&row)))
    }

    /// The disk that the cloud has created for this name, once it is; none if it certainly does not exist any more.
    async fn completed(
        &self,
        deadline: Deadline,
        id: &DiskId,
        new: &NewDisk,
    ) -> Result<Option<Disk>> {
        let Some(disk) = self.made(deadline, id, new).await? else {
            tracing::warn!(volume.name = new.name, disk.id = %id, "the disk of this name does not exist any more");
            self.attempts.forget(&new.name, id.as_str());
            return Ok(None);
        };
        refuse_other(&disk, new)?;
        self.journal.disks.made(&disk.id, &disk);
        self.journal.ephemeral.note(&disk);
        Ok(Some(disk))
    }

    /// The request with the source's size as its least.
    async fn sized_for_source(&self, deadline: Deadline, new: &NewDisk) -> Result<NewDisk> {
        let mut new = new.clone();
        let Some(id) = &new.snapshot else {
            return Ok(new);
        };
        // The caller waited until it was told that the snapshot is ready.
        let ready = |row: &Snapshot| row.available;
        let row = settled_as(&self.snapshots.rows, id, deadline, ready).await;
        let row = row.map_err(wait(format!("look at snapshot {id}")))?;
        let snapshot = row.ok_or_else(|| Error::NoSuchSnapshot {
            snapshot: id.clone(),
        })?;
        // The cloud takes no unencrypted disk from it, and the request does not ask for one.
        new.encrypted |= snapshot.encrypted;
        if !snapshot.available {
            return Err(Error::SnapshotNotReady {
                snapshot: id.clone(),
            });
        }
        new.size = at_least(&new, snapshot.source_size, &format!("snapshot {id} needs"))?;
        Ok(new)
    }

    /// A disk that was found, if it will do; none when it is gone before it is made.
    pub(super) async fn adopt(
        &self,
        deadline: Deadline,
        disk: &Disk,
        new: &NewDisk,
    ) -> Result<Option<Disk>> {
        refuse_other(disk, new)?;
        let adopted = match disk.status {
            DiskStatus::Creating => self.made(deadline, &disk.id, new).await?,
            _ => Some(disk.clone()),
        };
        if let Some(disk) = &adopted {
            self.journal.disks.made(&disk.id, disk);
            self.journal.ephemeral.note(disk);
        }
        Ok(adopted)
    }

    /// Waits until the disk is no longer `Creating`; none if it certainly does not exist any more: it was deleted since,
    /// or its creation failed in the cloud.
    async fn made(&self, deadline: Deadline, disk: &DiskId, new: &NewDisk) -> Result<Option<Disk>> {
        // The token still names a disk that was deleted a moment ago, and an old read shows it.
        if self.disks.known_absent(disk).is_some() {
            return Ok(None);
        }
        let missing = NotFoundConfirmation::new(&self.attempts, &new.name, disk.as_str());
        let made = |row: &Disk| (row.status != DiskStatus::Creating).then(|| row.clone());
        let operation = Some(Operation::Create);
        let waited = until_created(&self.disks, disk, deadline, operation, missing, made).await;
        waited.map_err(wait(format!("see disk {disk} become Available")))
    }
}

fn refuse_other(disk: &Disk, new: &NewDisk) -> Result<()> {
    match compare::disk(disk, new) {
        None => Ok(()),
        Some(differences) => Err(Error::Exists {
            name: new.name.clone(),
            existing: format!("disk {}", disk.id),
            differences,
        }),
    }
}

/// The sizes wanted of a disk with a source, which is no smaller than that.
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
