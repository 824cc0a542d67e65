//! Snapshots: taking and deleting them.

use super::error::{Error, cloud, wait};
use super::find::lagging;
use super::missing::{Missing, settled};
use super::trail::is_final;
use super::{Disks, Result, compare, label};
use crate::base::Deadline;
use crate::cloud::poll::Seen;
use crate::cloud::{self as api, CreateSnapshot, Kind};
use crate::model::{ClientToken, DiskId, Snapshot, SnapshotId, SnapshotStatus, tag};

/// A snapshot that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSnapshot {
    /// The CSI name; the same name is the same snapshot.
    pub name: String,
    /// The disk to take it of.
    pub source: DiskId,
}

impl Disks {
    /// The snapshot of this name, begun unless it exists. Answers once the point in time is cut: from
    /// then on the workload may write again (CSI `CreateSnapshot`).
    ///
    /// # Errors
    /// [`Error::Exists`] when the name belongs to a snapshot of another disk.
    pub async fn create_snapshot(&self, deadline: Deadline, new: &NewSnapshot) -> Result<Snapshot> {
        loop {
            let id = self.take(deadline, new).await?;
            let Some(snapshot) = self.cut(deadline, new, &id).await? else {
                tracing::warn!(snapshot.name = new.name, snapshot.id = %id, "it is gone");
                self.trails.snapshots.note(&new.name, |past| {
                    past.missed = None;
                    past.gone = Some(id.to_string());
                });
                continue;
            };
            self.trails
                .snapshots
                .note(&new.name, |past| past.refused = 0);
            return match compare::snapshot(&snapshot, &new.source) {
                None => Ok(snapshot),
                Some(differences) => Err(Error::Exists {
                    name: new.name.clone(),
                    existing: format!("snapshot {id}"),
                    differences,
                }),
            };
        }
    }

    /// Begins the snapshot, once, whatever became of earlier calls.
    async fn take(&self, deadline: Deadline, new: &NewSnapshot) -> Result<SnapshotId> {
        let past = self.trails.snapshots.of(&new.name);
        let find = || self.find_snapshot(deadline, &new.name);
        if !self.fresh.snapshots.token_suffices(&new.name)
            && let Some(snapshot) = find().await?
        {
            return Ok(snapshot.id);
        }
        // The source stays out of the token: with another one the cloud answers a mismatch, which is
        // how a name that is used twice shows.
        let (cluster, gone) = (self.cluster.as_str(), past.gone.as_deref());
        let name = [cluster, new.name.as_str()].into_iter().chain(gone);
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
        outcome.map_err(|error| {
            if error.has_code("InvalidDiskId.NotFound") {
                let disk = new.source.clone();
                return Error::NoSuchDisk { disk };
            }
            cloud(step(new))(error)
        })
    }

    async fn order_snapshot(
        &self,
        deadline: Deadline,
        new: &NewSnapshot,
        token: ClientToken,
    ) -> api::Result<SnapshotId> {
        let request = CreateSnapshot {
            disk: new.source.clone(),
            name: label::display_name(&new.name),
            retention_days: None,
            tags: self.tags(&new.name),
            token,
        };
        let outcome = self.ecs.create_snapshot(deadline, &request).await;
        if outcome.as_ref().is_err_and(is_final) {
            let trail = &self.trails.snapshots;
            trail.note(&new.name, |past| past.refused += 1);
        }
        outcome
    }

    /// Waits for the cut; none once it can be believed that there is no such snapshot.
    async fn cut(
        &self,
        deadline: Deadline,
        new: &NewSnapshot,
        id: &SnapshotId,
    ) -> Result<Option<Snapshot>> {
        let mut missing = Missing::new(&self.trails.snapshots, &new.name, id.as_str());
        let cut = |seen: Seen<Snapshot>| match seen {
            Seen::Row(row) if row.status == SnapshotStatus::Failed => {
                let snapshot = row.id.clone();
                Some(Err(Error::SnapshotFailed { snapshot }))
            }
            Seen::Row(row) => {
                missing.shown();
                let cut = row.created.is_some();
                cut.then(|| Ok(Some(Snapshot::clone(&row))))
            }
            Seen::Nothing => missing.missed().then_some(Ok(None)),
            Seen::Failed(_) => None,
        };
        let waited = self.snapshots.until(id, deadline, cut).await;
        waited.map_err(wait(step(new)))?
    }

    /// Deletes the snapshot. One that is not there is success. Disks made from it stay as they are.
    ///
    /// # Errors
    /// [`Error::NotOurs`], when nothing was done.
    pub async fn delete_snapshot(&self, deadline: Deadline, id: &SnapshotId) -> Result<()> {
        let step = || format!("delete snapshot {id}");
        let row = settled(&self.snapshots, id, deadline).await;
        let Some(row) = row.map_err(wait(step()))? else {
            return Ok(());
        };
        self.owns(&row.tags).map_err(|owner| Error::NotOurs {
            what: format!("snapshot {id}"),
            tag: tag::CLUSTER,
            owner,
            cluster: self.cluster.clone(),
        })?;
        match self.ecs.delete_snapshot(deadline, id).await {
            Err(error) if error.kind() == Kind::NotFound => Ok(()),
            outcome => outcome.map_err(cloud(step())),
        }
    }
}

fn step(new: &NewSnapshot) -> String {
    format!("take snapshot {:?} of disk {}", new.name, new.source)
}
