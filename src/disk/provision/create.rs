//! Creating a disk, blank or from a snapshot.

use super::place::choose;
use super::{Provisioner, compare};
use crate::base::Deadline;
use crate::cloud::view::{Operation, Seen};
use crate::disk::error::{Error, wait};
use crate::disk::stale_read::{NotFoundConfirmation, settled_as};
use crate::disk::{NewDisk, Result};
use crate::model::{Bytes, Disk, DiskId, DiskStatus, SizeRange, Snapshot};

impl Provisioner {
    /// The disk of this name, created unless it exists, and `Available` or beyond.
    ///
    /// # Errors
    /// [`Error::Exists`] when the name belongs to a disk that differs; [`Error::OutOfStock`] when
    /// nothing of what is wanted can be had; [`Error::OutOfRange`] when nothing has that size.
    pub async fn create(&self, deadline: Deadline, new: &NewDisk) -> Result<Disk> {
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
        // A single pair is safe by its token while the cloud remembers that. Of several, an earlier
        // call may have taken another than this one would: only the tags know.
        let looks = !self.fresh.token_suffices(&new.name) || choice.pairs.len() > 1;
        if looks
            && let Some(found) = self.find_disk(deadline, &new.name).await?
            && let Some(disk) = self.adopt(deadline, &found, new).await?
        {
            return Ok(disk);
        }
        loop {
            let id = self.buy(deadline, new, &choice, looks).await?;
            let Some(disk) = self.made(deadline, &id, new).await? else {
                tracing::warn!(volume.name = new.name, disk.id = %id, "the name's disk is gone");
                self.attempts.note(&new.name, |past| {
                    past.unclear = None;
                    past.missed = None;
                    past.gone = Some(id.to_string());
                });
                continue;
            };
            self.attempts.note(&new.name, |past| {
                past.refused = 0;
                past.unclear = None;
            });
            refuse_other(&disk, new)?;
            self.journal.disks.made(&disk.id, &disk);
            self.journal.ephemeral.note(&disk);
            return Ok(disk);
        }
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
        let least = snapshot.source_size.bytes();
        if new.size.limit.is_some_and(|limit| limit < least) {
            let reasons = format!(
                "snapshot {id} needs {}, wanted {}",
                snapshot.source_size, new.size
            );
            return Err(Error::OutOfRange {
                name: new.name,
                reasons,
            });
        }
        let required: Bytes = new.size.required.unwrap_or_default().max(least);
        new.size = SizeRange {
            required: Some(required),
            limit: new.size.limit,
        };
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

    /// Waits until the disk is made; none once it can be believed that there is no such disk: it was
    /// deleted since, or the cloud lost it.
    async fn made(&self, deadline: Deadline, disk: &DiskId, new: &NewDisk) -> Result<Option<Disk>> {
        // Its token still names what was deleted just now, and an old read shows it.
        if self.journal.disks.known().is_gone(disk) {
            return Ok(None);
        }
        let mut missing = NotFoundConfirmation::new(&self.attempts, &new.name, disk.as_str());
        let made = |seen: Seen<Disk>| match seen {
            Seen::Row(row) => {
                missing.shown();
                (row.status != DiskStatus::Creating).then(|| Some(Disk::clone(&row)))
            }
            Seen::Missing { .. } => missing.missed().then_some(None),
            Seen::Failed(_) => None,
        };
        let waited = self
            .disks
            .until_done(disk, deadline, Operation::Create, made)
            .await;
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
