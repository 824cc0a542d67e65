use ecs::poll::{Operation, OperationKind};

use super::candidates::select_candidates;
use super::{Provisioner, compare};
use crate::base::Deadline;
use crate::disk::error::{Error, rejected, wait};
use crate::disk::evidence::CreateCall;
use crate::disk::read::read_in_state;
use crate::disk::{NewDisk, Result};
use crate::model::{Disk, DiskId, DiskStatus, Failure, Gib, SizeRange, Snapshot};

impl Provisioner {
    /// Creates the disk of this name unless it exists, and waits until it is no longer `Creating`.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the disk of this name differs from the request; [`Error::OutOfStock`];
    /// [`Error::OutOfRange`] if no category supports the size. [`Error::CreationUnresolved`] instead of any final error
    /// while an earlier attempt may have created the disk.
    pub async fn create(&self, deadline: Deadline, new: &NewDisk) -> Result<Disk> {
        let tags = self.shared.owner.name_tags(&new.name);
        let call = self.creator.start_call(&new.name, tags);
        let outcome = self.find_or_create(deadline, new, &call).await;
        self.creator.finish(deadline, &call, |disk| &disk.id, outcome).await
    }

    async fn find_or_create(&self, deadline: Deadline, new: &NewDisk, call: &CreateCall) -> Result<Disk> {
        loop {
            if let Some(id) = self.creator.find_existing(deadline, call).await? {
                let operation = Operation::Create;
                let is_running = self.shared.disks.is_running(&id, operation);
                let operation = is_running.then(|| operation.into());
                if let Some(disk) = self.wait_complete(deadline, new, call, &id, operation).await? {
                    return Ok(disk);
                }
            }
            let (id, operation) = match self.with_source(deadline, new).await {
                // Deleted meanwhile, possibly after an earlier call of this name used it.
                Err(error @ (Error::NoSuchSnapshot { .. } | Error::NoSuchDisk { .. })) => {
                    let found = self.creator.find_by_tags(deadline, call).await?;
                    (found.ok_or(error)?, None)
                }
                sized => {
                    let new = sized?;
                    let selection = select_candidates(&new)?;
                    self.create_in_zone(deadline, &new, &selection, call).await?
                }
            };
            if let Some(disk) = self.wait_complete(deadline, new, call, &id, operation).await? {
                return Ok(disk);
            }
        }
    }

    /// The disk once it is no longer `Creating`, if it matches; none if it is proven to be deleted.
    async fn wait_complete(
        &self,
        deadline: Deadline,
        new: &NewDisk,
        call: &CreateCall,
        id: &DiskId,
        operation: Option<OperationKind>,
    ) -> Result<Option<Disk>> {
        // A disk that is being deleted, or whose status is unknown, is not a created one.
        let is_finished = |row: &Disk| !matches!(row.status, DiskStatus::Creating | DiskStatus::Unknown(_));
        let created = |row: &Disk| is_finished(row).then(|| row.clone());
        let creator = &self.creator;
        let waited = creator.wait_created(deadline, call, id, operation, created);
        let step = format!("create disk {id}");
        let Some(disk) = waited.await.map_err(wait(step))? else {
            return Ok(None);
        };
        if let Some(differences) = compare::disk(&disk, new) {
            return Err(Error::AlreadyExists {
                name: new.name.clone(),
                existing: format!("disk {id}"),
                differences,
            });
        }
        self.shared.journal.disks.record_created(id, &disk);
        self.shared.journal.record_category(&disk);
        Ok(Some(disk))
    }

    /// The request with its snapshot, and at least the size of the source.
    async fn with_source(&self, deadline: Deadline, new: &NewDisk) -> Result<NewDisk> {
        let mut new = new.clone();
        if let Some(source) = new.clone_of.clone() {
            new = self.with_temporary_snapshot(deadline, new, &source).await?;
        }
        let Some(id) = &new.snapshot else {
            return Ok(new);
        };
        // The caller waited until the snapshot was ready.
        let ready = |row: &Snapshot| row.available;
        let row = read_in_state(&self.snapshots.creator.rows, deadline, id, ready).await?;
        let snapshot = row.ok_or_else(|| Error::NoSuchSnapshot { snapshot: id.clone() })?;
        // The cloud creates only encrypted disks from it, and the request does not require an unencrypted one.
        new.encrypted |= snapshot.encrypted;
        if !snapshot.available {
            let text = format!("snapshot {id} is not ready to be used yet");
            return Err(rejected(Failure::SnapshotNotReady, text, None));
        }
        new.size = at_least(&new, snapshot.source_size, &format!("snapshot {id} needs"))?;
        Ok(new)
    }
}

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
