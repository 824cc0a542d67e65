//! Creating snapshots, and reading one.

use super::create_once::Request;
use super::{Snapshotter, compare, key};
use crate::base::Deadline;
use crate::cloud::view::Operation;
use crate::cloud::{self as api, Condition, CreateSnapshot};
use crate::disk::Result;
use crate::disk::created::until_created;
use crate::disk::error::{Error, cloud, wait};
use crate::disk::ownership::{Owner, display_name};
use crate::disk::ownership_listing::OwnershipListing;
use crate::disk::stale_read::{NotFoundConfirmation, settled};
use crate::model::{ClientToken, DiskId, Snapshot, SnapshotId, SnapshotStatus, Tags};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSnapshot {
    /// The CSI name; the same name is the same snapshot. Of a clone's snapshot: the volume's.
    pub name: String,
    pub source: DiskId,
    /// Days until the cloud deletes it; none is for ever.
    pub retention_days: Option<u32>,
    /// Resource group to bill it to; none is the account's default.
    pub resource_group: Option<String>,
    /// Tags beside the driver's own.
    pub tags: Tags,
    pub purpose: Purpose,
}

/// What a snapshot is taken for. A name is good only within its purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A caller asked for it.
    Request,
    /// To make one volume from it, and to go again.
    Clone,
}

impl Request for NewSnapshot {
    type Id = SnapshotId;

    const ACTION: &'static str = "CreateSnapshot";

    fn key(&self) -> String {
        match self.purpose {
            Purpose::Request => self.name.clone(),
            Purpose::Clone => key::of_clone(&self.name),
        }
    }

    // The source stays out of the token of the name: with another one the cloud answers a mismatch, which is how a name
    // that is used twice shows.
    fn content(&self) -> Vec<&str> {
        vec![self.source.as_str()]
    }

    fn listing<'a>(&self, snapshotter: &'a Snapshotter) -> &'a OwnershipListing {
        &snapshotter.listing
    }

    async fn send(
        &self,
        snapshotter: &Snapshotter,
        deadline: Deadline,
        token: ClientToken,
    ) -> api::Result<SnapshotId> {
        let mut tags = self.tags.clone();
        tags.extend(self.marks(&snapshotter.owner));
        let name = match self.purpose {
            Purpose::Request => display_name(&self.name),
            Purpose::Clone => display_name(&format!("clone-for-{}", self.name)),
        };
        let request = CreateSnapshot {
            disk: self.source.clone(),
            name,
            retention_days: self.retention_days,
            resource_group: self.resource_group.clone(),
            tags,
            token,
        };
        snapshotter.ecs.create_snapshot(deadline, &request).await
    }

    async fn find(
        &self,
        snapshotter: &Snapshotter,
        deadline: Deadline,
        gone: Option<&str>,
    ) -> Result<Option<SnapshotId>> {
        let marks = self.marks(&snapshotter.owner);
        let found = snapshotter.find(deadline, &self.name, &marks, gone).await?;
        Ok(found.map(|row| row.id))
    }
}

impl NewSnapshot {
    /// The tags by which it is found again.
    fn marks(&self, owner: &Owner) -> Tags {
        match self.purpose {
            Purpose::Request => owner.tags_of(&self.name),
            Purpose::Clone => owner.clone_tags(&self.name),
        }
    }
}

impl Snapshotter {
    /// The snapshot of this name, created unless it exists. Returns once its point in time is cut: from then on the
    /// workload may write again (CSI `CreateSnapshot`).
    ///
    /// # Errors
    /// [`Error::Exists`] if the name belongs to a snapshot of another disk; [`Error::NeverAttached`];
    /// [`Error::CreationUnresolved`] while an earlier call may have taken effect; [`Error::SnapshotFailed`]: one that
    /// failed before its cut was reported to nobody, is deleted, and the next call creates another.
    pub async fn create(&self, deadline: Deadline, new: &NewSnapshot) -> Result<Snapshot> {
        let outcome = self.find_or_create(deadline, new).await;
        let id = |created: &Snapshot| created.id.to_string();
        self.attempts.conclude(&new.name, &new.key(), id, outcome)
    }

    async fn find_or_create(&self, deadline: Deadline, new: &NewSnapshot) -> Result<Snapshot> {
        loop {
            let id = self.create_once(deadline, new, None).await?;
            let id = id.map_err(|refusal| refused(new, refusal))?;
            let Some(snapshot) = self.until_cut(deadline, new, &id).await? else {
                tracing::warn!(snapshot.name = new.name, snapshot.id = %id, "the snapshot was deleted");
                self.forget(new, &id);
                continue;
            };
            if let Some(differences) = compare::snapshot(&snapshot, &new.source) {
                return Err(Error::Exists {
                    name: new.name.clone(),
                    existing: format!("snapshot {id}"),
                    differences,
                });
            }
            if snapshot.status == SnapshotStatus::Failed {
                return Err(self.failed(deadline, new, snapshot).await);
            }
            if new.purpose == Purpose::Request {
                self.journal.snapshots.made(&id, &snapshot);
            }
            return Ok(snapshot);
        }
    }

    /// The name has no snapshot any more, though its token still says so.
    pub(in crate::disk) fn forget(&self, new: &NewSnapshot, id: &SnapshotId) {
        self.attempts.forget(&new.key(), id.as_str());
    }

    async fn failed(&self, deadline: Deadline, new: &NewSnapshot, row: Snapshot) -> Error {
        let snapshot = row.id;
        let next = if row.created.is_some() {
            self.attempts.close(&new.key());
            "delete it and take another"
        } else if let Err(error) = self.discard(deadline, &snapshot).await {
            tracing::warn!(snapshot.id = %snapshot, %error, "cannot delete a failed snapshot");
            "it is deleted with the next call"
        } else {
            self.forget(new, &snapshot);
            "it is deleted, and another one is taken with the next call"
        };
        Error::SnapshotFailed { snapshot, next }
    }

    /// Waits for the cut, or for the failure; none if the snapshot certainly does not exist any more.
    async fn until_cut(
        &self,
        deadline: Deadline,
        new: &NewSnapshot,
        id: &SnapshotId,
    ) -> Result<Option<Snapshot>> {
        // The token still names a snapshot that was deleted a moment ago, and an old read shows it.
        if self.rows.known_absent(id).is_some() {
            return Ok(None);
        }
        let key = new.key();
        let missing = NotFoundConfirmation::new(&self.attempts, &key, id.as_str());
        let cut = |row: &Snapshot| is_decided(row).then(|| row.clone());
        let operation = Some(Operation::Snapshot);
        let waited = until_created(&self.rows, id, deadline, operation, missing, cut).await;
        waited.map_err(wait(step(new)))
    }

    /// The snapshot as it stands. Many at a time cost one description for a hundred of them.
    ///
    /// # Errors
    /// [`Error::NoSuchSnapshot`] if there certainly is none; [`Error::NotCut`] before
    /// its point in time is cut; [`Error::SnapshotFailed`].
    pub async fn get(&self, deadline: Deadline, id: &SnapshotId) -> Result<Snapshot> {
        let row = settled(&self.rows, id, deadline).await;
        let row = row.map_err(wait(format!("look at snapshot {id}")))?;
        let row = row.ok_or_else(|| Error::NoSuchSnapshot {
            snapshot: id.clone(),
        })?;
        if row.status == SnapshotStatus::Failed {
            return Err(Error::SnapshotFailed {
                snapshot: id.clone(),
                next: "delete it and take another",
            });
        }
        if row.created.is_none() {
            let what = format!("snapshot {id}");
            return Err(Error::NotCut { what });
        }
        Ok(Snapshot::clone(&row))
    }
}

/// Whether its point in time is cut, or never will be.
pub(super) fn is_decided(row: &Snapshot) -> bool {
    row.created.is_some() || row.status == SnapshotStatus::Failed
}

fn refused(new: &NewSnapshot, source: api::Error) -> Error {
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
