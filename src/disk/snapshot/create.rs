//! Creating snapshots, and reading one.

use super::{Snapshotter, compare};
use crate::base::Deadline;
use crate::cloud::view::Operation;
use crate::cloud::{self, Condition, CreateSnapshot};
use crate::disk::Result;
use crate::disk::create_once::Call;
use crate::disk::error::{self, Error, cloud, wait};
use crate::disk::ownership::{Owner, display_name};
use crate::disk::read::read;
use crate::model::{ClientToken, DiskId, Failure, Snapshot, SnapshotId, SnapshotStatus, Tags};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSnapshot {
    /// The CSI name; the same name is the same snapshot. Of a clone's snapshot: the volume's.
    pub name: String,
    pub source: DiskId,
    /// Days until the cloud deletes it; none is for ever.
    pub retention_days: Option<u32>,
    /// Resource group to bill it to; none is the account's default.
    pub resource_group: Option<String>,
    pub tags: Tags,
    pub purpose: Purpose,
}

/// What a snapshot is taken for. A name is good only within its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Request,
    /// To make one volume from it, and to go again.
    Clone,
}

impl NewSnapshot {
    fn marks(&self, owner: &Owner) -> Tags {
        match self.purpose {
            Purpose::Request => owner.tags_of(&self.name),
            Purpose::Clone => owner.clone_tags(&self.name),
        }
    }

    fn request(&self, owner: &Owner, token: ClientToken) -> CreateSnapshot {
        let mut tags = self.tags.clone();
        tags.extend(self.marks(owner));
        let name = match self.purpose {
            Purpose::Request => display_name(&self.name),
            Purpose::Clone => display_name(&format!("clone-for-{}", self.name)),
        };
        CreateSnapshot {
            disk: self.source.clone(),
            name,
            retention_days: self.retention_days,
            resource_group: self.resource_group.clone(),
            tags,
            token,
        }
    }
}

impl Snapshotter {
    /// The snapshot of this name, created unless it exists. Returns once its point in time is cut: from then on the
    /// workload may write again (CSI `CreateSnapshot`).
    ///
    /// # Errors
    /// [`Error::Exists`] if the name belongs to a snapshot of another disk; [`Error::NeverAttached`];
    /// [`Error::CreationUnresolved`] while an earlier call may have taken effect; `SNAPSHOT_FAILED`: one that
    /// failed before its cut was reported to nobody, is deleted, and the next call creates another.
    pub async fn create(&self, deadline: Deadline, new: &NewSnapshot) -> Result<Snapshot> {
        let mut call = self.call(new);
        let outcome = self.find_or_create(deadline, new, &mut call).await;
        self.creator
            .conclude(deadline, &call, |row| &row.id, outcome)
            .await
    }

    async fn find_or_create(
        &self,
        deadline: Deadline,
        new: &NewSnapshot,
        call: &mut Call,
    ) -> Result<Snapshot> {
        // Its point in time is cut, or never will be.
        let cut = |row: &Snapshot| is_decided(row).then(|| row.clone());
        let creator = &self.creator;
        let snapshot = loop {
            let request = |token| new.request(&self.owner, token);
            let ordered = creator.find_or_order(deadline, call, request).await?;
            let id = ordered.map_err(|refusal| refused(new, refusal))?;
            let operation = Some(Operation::Snapshot.into());
            let waited = creator.until_created(deadline, call, &id, operation, cut);
            if let Some(row) = waited.await.map_err(wait(step(new)))? {
                break row;
            }
        };
        if let Some(differences) = compare::snapshot(&snapshot, &new.source) {
            return Err(Error::Exists {
                name: new.name.clone(),
                existing: format!("snapshot {}", snapshot.id),
                differences,
            });
        }
        if snapshot.status == SnapshotStatus::Failed {
            return Err(self.failed(deadline, new, snapshot).await);
        }
        if new.purpose == Purpose::Request {
            self.journal.snapshots.created(&snapshot.id, &snapshot);
        }
        Ok(snapshot)
    }

    pub(in crate::disk) fn call(&self, new: &NewSnapshot) -> Call {
        self.creator.call(&new.name, new.marks(&self.owner))
    }

    /// The snapshot that this process has created under the name.
    pub(in crate::disk) fn created(&self, new: &NewSnapshot) -> Option<SnapshotId> {
        self.call(new).past.created?.parse().ok()
    }

    pub(in crate::disk) async fn find(
        &self,
        deadline: Deadline,
        new: &NewSnapshot,
    ) -> Result<Option<SnapshotId>> {
        let marks = new.marks(&self.owner);
        let found = self.creator.named(deadline, &new.name, &marks, None);
        Ok(found.await?.map(|row| row.id))
    }

    /// The name has no snapshot any more, though its token still says so.
    pub(in crate::disk) fn forget(&self, new: &NewSnapshot, id: &SnapshotId) {
        let key = self.call(new).key;
        self.creator.attempts.forget(&key, id.as_str());
    }

    async fn failed(&self, deadline: Deadline, new: &NewSnapshot, row: Snapshot) -> Error {
        let snapshot = row.id;
        let next = if row.created.is_some() {
            let key = self.call(new).key;
            self.creator.attempts.resolve(&key, None, false);
            "delete it and take another"
        } else if let Err(error) = self.discard(deadline, &snapshot).await {
            tracing::warn!(snapshot.id = %snapshot, %error, "cannot delete a failed snapshot");
            "it is deleted with the next call"
        } else {
            self.forget(new, &snapshot);
            "it is deleted, and another one is taken with the next call"
        };
        failed(&snapshot, next)
    }

    /// The snapshot as it stands. Many at a time cost one description for a hundred of them.
    ///
    /// # Errors
    /// [`Error::NoSuchSnapshot`] if there certainly is none; [`Error::Refused`] before its point in
    /// time is cut, or if it failed.
    pub async fn get(&self, deadline: Deadline, id: &SnapshotId) -> Result<Snapshot> {
        let row = read(&self.creator.rows, deadline, id).await?;
        let row = row.ok_or_else(|| Error::NoSuchSnapshot {
            snapshot: id.clone(),
        })?;
        if row.status == SnapshotStatus::Failed {
            return Err(failed(id, "delete it and take another"));
        }
        if row.created.is_none() {
            return Err(not_captured(&format!("snapshot {id}")));
        }
        Ok(row)
    }
}

/// The error for a snapshot that failed, and what becomes of it.
pub(in crate::disk) fn failed(snapshot: &SnapshotId, next: &str) -> Error {
    let text = format!("snapshot {snapshot} failed in the cloud; {next}");
    error::refused(Failure::SnapshotFailed, text, None)
}

pub(super) fn not_captured(what: &str) -> Error {
    let text = format!("the point in time of {what} is not cut yet");
    error::refused(Failure::SnapshotNotCut, text, None)
}

/// Whether its point in time is cut, or never will be.
pub(super) fn is_decided(row: &Snapshot) -> bool {
    row.created.is_some() || row.status == SnapshotStatus::Failed
}

fn refused(new: &NewSnapshot, source: cloud::Error) -> Error {
    let disk = new.source.clone();
    match source.condition() {
        Condition::NoSuchDisk => Error::NoSuchDisk { disk },
        Condition::NeverAttached => Error::NeverAttached { disk, source },
        _ => cloud(step(new))(source),
    }
}

fn step(new: &NewSnapshot) -> String {
    format!("take snapshot {:?} of disk {}", new.name, new.source)
}
