//! Taking snapshots, and looking at one.

use super::{Snapshotter, compare};
use crate::base::Deadline;
use crate::cloud::view::Operation;
use crate::cloud::{self as api, CreateSnapshot, Kind};
use crate::disk::Result;
use crate::disk::attempts::is_final;
use crate::disk::created::until_created;
use crate::disk::error::{Error, cloud, wait};
use crate::disk::ownership::{Owner, display_name};
use crate::disk::stale_read::{NotFoundConfirmation, settled};
use crate::disk::tag_index::lagging;
use crate::model::{ClientToken, DiskId, Snapshot, SnapshotId, SnapshotStatus, Tags};

/// A snapshot that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSnapshot {
    /// The CSI name; the same name is the same snapshot. Of a clone's snapshot: the volume's.
    pub name: String,
    /// The disk to take it of.
    pub source: DiskId,
    /// Days until the cloud deletes it; none is for ever.
    pub retention_days: Option<u32>,
    /// Resource group to bill it to; none is the account's default.
    pub resource_group: Option<String>,
    /// Tags beside the driver's own.
    pub tags: Tags,
    /// What it is taken for.
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

impl NewSnapshot {
    /// The tags by which it is found again.
    fn marks(&self, owner: &Owner) -> Tags {
        match self.purpose {
            Purpose::Request => owner.tags_of(&self.name),
            Purpose::Clone => owner.clone_tags(&self.name),
        }
    }

    /// Under what this process remembers it. No CSI name has a control character.
    pub(super) fn key(&self) -> String {
        match self.purpose {
            Purpose::Request => self.name.clone(),
            Purpose::Clone => format!("\0{}", self.name),
        }
    }
}

impl Snapshotter {
    /// The snapshot of this name, begun unless it exists. Answers once the point in time is cut: from
    /// then on the workload may write again (CSI `CreateSnapshot`).
    ///
    /// # Errors
    /// [`Error::Exists`] when the name belongs to a snapshot of another disk; [`Error::NeverAttached`];
    /// [`Error::SnapshotFailed`]: one that failed before its cut was never told to anybody, is deleted,
    /// and the next call takes another.
    pub async fn create(&self, deadline: Deadline, new: &NewSnapshot) -> Result<Snapshot> {
        loop {
            let id = self.take(deadline, new).await?;
            let Some(snapshot) = self.cut(deadline, new, &id).await? else {
                tracing::warn!(snapshot.name = new.name, snapshot.id = %id, "it is gone");
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
            self.attempts.note(&new.key(), |past| past.refused = 0);
            if new.purpose == Purpose::Request {
                self.journal.snapshots.made(&id, &snapshot);
            }
            return Ok(snapshot);
        }
    }

    /// The name has no snapshot any more, though its token still says so.
    pub(in crate::disk) fn forget(&self, new: &NewSnapshot, id: &SnapshotId) {
        self.attempts.note(&new.key(), |past| {
            past.missed = None;
            past.gone = Some(id.to_string());
        });
    }

    async fn failed(&self, deadline: Deadline, new: &NewSnapshot, row: Snapshot) -> Error {
        let snapshot = row.id;
        if row.created.is_some() {
            let next = "delete it and take another";
            return Error::SnapshotFailed { snapshot, next };
        }
        match self.discard(deadline, &snapshot).await {
            Ok(()) => {
                self.forget(new, &snapshot);
                let next = "it is deleted, and another one is taken with the next call";
                Error::SnapshotFailed { snapshot, next }
            }
            Err(error) => {
                tracing::warn!(snapshot.id = %snapshot, %error, "a failed snapshot stays");
                let next = "it is deleted with the next call";
                Error::SnapshotFailed { snapshot, next }
            }
        }
    }

    /// Begins the snapshot, once, whatever became of earlier calls.
    async fn take(&self, deadline: Deadline, new: &NewSnapshot) -> Result<SnapshotId> {
        let key = new.key();
        let past = self.attempts.of(&key);
        let marks = new.marks(&self.owner);
        let find = async || {
            let found = self.find(deadline, &new.name, &marks).await?;
            // An old description still has what this process saw end.
            let live = |row: &Snapshot| past.gone.as_deref() != Some(row.id.as_str());
            Ok(found.filter(live))
        };
        if !self.fresh.token_suffices(&key)
            && let Some(snapshot) = find().await?
        {
            return Ok(snapshot.id);
        }
        // The source stays out of the token: with another one the cloud answers a mismatch, which is
        // how a name that is used twice shows.
        let (cluster, gone) = (self.owner.cluster.as_str(), past.gone.as_deref());
        let name = [cluster, key.as_str()].into_iter().chain(gone);
        let token = ClientToken::derive("CreateSnapshot", name.clone());
        let refusal = match self.order_snapshot(deadline, new, token).await {
            Ok(id) => return Ok(id),
            Err(refusal) => refusal,
        };
        let found = match refusal.kind() {
            Kind::TokenMismatch => lagging(deadline, find).await?,
            // The echo of an earlier refusal; or another snapshot is being taken, perhaps this one.
            _ if is_final(&refusal) => find().await?,
            _ => None,
        };
        if let Some(snapshot) = found {
            return Ok(snapshot.id);
        }
        let outcome =
            if refusal.kind() == Kind::TokenMismatch || (is_final(&refusal) && past.refused > 0) {
                // Nothing carries the name, so a token of the whole request is safe.
                let refused = past.refused.to_string();
                let whole = name.chain([new.source.as_str(), &refused]);
                let token = ClientToken::derive("CreateSnapshot", whole);
                self.order_snapshot(deadline, new, token).await
            } else {
                Err(refusal)
            };
        outcome.map_err(|refusal| refused(new, refusal))
    }

    async fn order_snapshot(
        &self,
        deadline: Deadline,
        new: &NewSnapshot,
        token: ClientToken,
    ) -> api::Result<SnapshotId> {
        let mut tags = new.tags.clone();
        tags.extend(new.marks(&self.owner));
        let name = match new.purpose {
            Purpose::Request => display_name(&new.name),
            Purpose::Clone => display_name(&format!("clone-for-{}", new.name)),
        };
        let request = CreateSnapshot {
            disk: new.source.clone(),
            name,
            retention_days: new.retention_days,
            resource_group: new.resource_group.clone(),
            tags,
            token,
        };
        let outcome = self.ecs.create_snapshot(deadline, &request).await;
        if outcome.as_ref().is_err_and(is_final) {
            let trail = &self.attempts;
            trail.note(&new.key(), |past| past.refused += 1);
        }
        outcome
    }

    /// Waits for the cut, or for the failure; none once it can be believed that there is no such
    /// snapshot.
    async fn cut(
        &self,
        deadline: Deadline,
        new: &NewSnapshot,
        id: &SnapshotId,
    ) -> Result<Option<Snapshot>> {
        // Its token still names what was deleted just now, and an old read shows it.
        if self.journal.snapshots.known().is_gone(id) {
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
    /// [`Error::NoSuchSnapshot`] once it can be believed that there is none; [`Error::NotCut`] before
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

/// Whether the cloud takes no snapshot because nothing was ever written to the disk.
pub(super) fn is_unwritten(refusal: &api::Error) -> bool {
    refusal.has_code("IncorrectDiskStatus.NeverAttached")
        || refusal.has_code("IncorrectDiskStatus.NeverUsed")
}

fn refused(new: &NewSnapshot, refusal: api::Error) -> Error {
    let disk = new.source.clone();
    if refusal.has_code("InvalidDiskId.NotFound") {
        return Error::NoSuchDisk { disk };
    }
    if is_unwritten(&refusal) {
        return Error::NeverAttached {
            disk,
            source: refusal,
        };
    }
    cloud(step(new))(refusal)
}

fn step(new: &NewSnapshot) -> String {
    format!("take snapshot {:?} of disk {}", new.name, new.source)
}
