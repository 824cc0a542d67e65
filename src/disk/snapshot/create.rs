use ecs::poll::Operation;
use ecs::{Condition, CreateSnapshot};

use super::Snapshotter;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::error::{self, Error, cloud, wait};
use crate::disk::evidence::CreateCall;
use crate::disk::ownership::{Owner, display_name};
use crate::disk::read::read_in_state;
use crate::model::{ClientToken, DiskId, Failure, Snapshot, SnapshotId, SnapshotStatus, Tags, tag};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSnapshot {
    /// The CSI name, which identifies the snapshot. For a clone, the name of the volume.
    pub name: String,
    pub source: DiskId,
    /// Days until the cloud deletes the snapshot; `None` for never.
    pub retention_days: Option<u32>,
    /// `None` for the account's default.
    pub resource_group: Option<String>,
    pub tags: Tags,
    pub purpose: SnapshotPurpose,
}

/// The purpose of a snapshot. Names are unique per purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotPurpose {
    Snapshot,
    /// A temporary snapshot, from which one volume is created.
    Clone,
    /// Taken before the disk is deleted.
    Deletion,
}

impl NewSnapshot {
    /// The tags that identify the snapshot, and its name in the console.
    fn identity(&self, owner: &Owner) -> (Tags, String) {
        let name = &self.name;
        let (tags, shown) = match self.purpose {
            SnapshotPurpose::Snapshot => (owner.name_tags(name), name.clone()),
            SnapshotPurpose::Clone => (owner.clone_tags(name), format!("clone-for-{name}")),
            SnapshotPurpose::Deletion => {
                let tags = owner.purpose_tags(tag::DELETION, tag::DELETION_OF, name);
                (tags, format!("deletion-of-{name}"))
            }
        };
        (tags, display_name(&shown))
    }

    fn request(&self, owner: &Owner, token: ClientToken) -> CreateSnapshot {
        let (identity, name) = self.identity(owner);
        let mut tags = self.tags.clone();
        tags.extend(identity);
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
    /// Creates the snapshot of this name unless it exists. Returns once it is cut (CSI `CreateSnapshot`).
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the name belongs to a snapshot of another disk; [`Error::NeverAttached`];
    /// [`Error::CreationUnresolved`] while an earlier call may have taken effect; `SNAPSHOT_FAILED`: a snapshot that
    /// no caller has received is deleted, and the next call creates another.
    pub async fn create(&self, deadline: Deadline, new: &NewSnapshot) -> Result<Snapshot> {
        let call = self.call(new);
        let outcome = self.find_or_create(deadline, new, &call).await;
        self.creator.finish(deadline, &call, |row| &row.id, outcome).await
    }

    async fn find_or_create(&self, deadline: Deadline, new: &NewSnapshot, call: &CreateCall) -> Result<Snapshot> {
        let cut = |row: &Snapshot| is_cut_or_failed(row).then(|| row.clone());
        let creator = &self.creator;
        let snapshot = loop {
            let request = |token| new.request(&self.shared.owner, token);
            let created = creator.find_or_create(deadline, call, request).await?;
            let id = created.map_err(|rejection| rejected(new, rejection))?;
            let operation = Some(Operation::Snapshot.into());
            let waited = creator.wait_created(deadline, call, &id, operation, cut);
            if let Some(row) = waited.await.map_err(wait(step(new)))? {
                break row;
            }
        };
        let source = snapshot.source_disk.as_ref();
        if source != Some(&new.source) {
            let source = source.map_or("unknown", DiskId::as_str);
            return Err(Error::AlreadyExists {
                name: new.name.clone(),
                existing: format!("snapshot {}", snapshot.id),
                differences: format!("source volume is {source}, wanted {}", new.source),
            });
        }
        if snapshot.status == SnapshotStatus::Failed {
            return Err(self.failed(deadline, call, snapshot, new.purpose).await);
        }
        if new.purpose != SnapshotPurpose::Clone {
            self.shared.journal.snapshots.record_created(&snapshot.id, &snapshot);
        }
        Ok(snapshot)
    }

    pub(in crate::disk) fn call(&self, new: &NewSnapshot) -> CreateCall {
        let (tags, _) = new.identity(&self.shared.owner);
        self.creator.start_call(&new.name, tags)
    }

    async fn failed(&self, deadline: Deadline, call: &CreateCall, row: Snapshot, purpose: SnapshotPurpose) -> Error {
        let snapshot = row.id;
        // A caller may have received it, which then deletes it.
        let next = if row.created.is_some() && purpose == SnapshotPurpose::Snapshot {
            "delete it and create another"
        } else if let Err(error) = self.discard(deadline, &snapshot).await {
            tracing::warn!(snapshot.id = %snapshot, %error, "cannot delete a failed snapshot");
            "the next call deletes it"
        } else {
            self.creator.forget(call, &snapshot);
            "it is deleted, and the next call creates another"
        };
        failed(&snapshot, next)
    }

    /// Reads the snapshot. Fails if it certainly does not exist, is not cut after the lag of reads, or failed.
    pub async fn get(&self, deadline: Deadline, id: &SnapshotId) -> Result<Snapshot> {
        let row = read_in_state(&self.creator.rows, deadline, id, is_cut_or_failed).await?;
        let row = row.ok_or_else(|| Error::NoSuchSnapshot { snapshot: id.clone() })?;
        if row.status == SnapshotStatus::Failed {
            return Err(failed(id, "delete it and create another"));
        }
        if row.created.is_none() {
            return Err(not_cut(&format!("snapshot {id}")));
        }
        Ok(row)
    }
}

/// The error for a failed snapshot, and what to do next.
pub(in crate::disk) fn failed(snapshot: &SnapshotId, next: &str) -> Error {
    let text = format!("snapshot {snapshot} failed in the cloud; {next}");
    error::rejected(Failure::SnapshotFailed, text, None)
}

pub(super) fn not_cut(what: &str) -> Error {
    let text = format!("the point in time of {what} is not cut yet");
    error::rejected(Failure::SnapshotNotCut, text, None)
}

/// Whether the snapshot is cut, or never will be.
pub(super) fn is_cut_or_failed(row: &Snapshot) -> bool {
    row.created.is_some() || row.status == SnapshotStatus::Failed
}

fn rejected(new: &NewSnapshot, source: ecs::Error) -> Error {
    let disk = new.source.clone();
    match source.condition() {
        Condition::NoSuchDisk => Error::NoSuchDisk { disk },
        Condition::NeverAttached => Error::NeverAttached { disk, source },
        _ => cloud(step(new))(source),
    }
}

fn step(new: &NewSnapshot) -> String {
    format!("create snapshot {:?} of disk {}", new.name, new.source)
}
