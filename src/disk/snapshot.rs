//! Snapshots: taking and deleting them.

use super::error::{Error, cloud, wait};
use super::{Disks, Result, compare, label};
use crate::base::Deadline;
use crate::cloud::poll::Seen;
use crate::cloud::{CreateSnapshot, Kind};
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
        let step = || format!("take snapshot {:?} of disk {}", new.name, new.source);
        // The source stays out of the token: with another one the cloud answers a mismatch, which is
        // how a name that is used twice shows.
        let token = ClientToken::derive("CreateSnapshot", [self.cluster.as_str(), &new.name]);
        let request = CreateSnapshot {
            disk: new.source.clone(),
            name: label::display_name(&new.name),
            retention_days: None,
            tags: self.tags(&new.name),
            token,
        };
        let id = match self.ecs.create_snapshot(deadline, &request).await {
            Ok(id) => id,
            Err(error) if error.has_code("InvalidDiskId.NotFound") => {
                return Err(Error::NoSuchDisk {
                    disk: new.source.clone(),
                });
            }
            // Also when another snapshot of the disk is being taken: it may be this very one.
            Err(error) if matches!(error.kind(), Kind::TokenMismatch | Kind::Conflict) => {
                let found = self.find_snapshot(deadline, &new.name).await?;
                found.ok_or_else(|| cloud(step())(error))?.id
            }
            Err(error) => return Err(cloud(step())(error)),
        };
        let cut = |seen: Seen<Snapshot>| match seen {
            Seen::Row(row) if row.status == SnapshotStatus::Failed => {
                Some(Err(Error::SnapshotFailed {
                    snapshot: row.id.clone(),
                }))
            }
            Seen::Row(row) => row.created.is_some().then(|| Ok(Snapshot::clone(&row))),
            Seen::Nothing | Seen::Failed(_) => None,
        };
        let snapshot = self
            .snapshots
            .until(&id, deadline, cut)
            .await
            .map_err(wait(step()))??;
        match compare::snapshot(&snapshot, &new.source) {
            None => Ok(snapshot),
            Some(differences) => Err(Error::Exists {
                name: new.name.clone(),
                existing: format!("snapshot {id}"),
                differences,
            }),
        }
    }

    /// Deletes the snapshot. One that is not there is success. Disks made from it stay as they are.
    ///
    /// # Errors
    /// [`Error::NotOurs`], when nothing was done.
    pub async fn delete_snapshot(&self, deadline: Deadline, id: &SnapshotId) -> Result<()> {
        let step = || format!("delete snapshot {id}");
        let Some(row) = self
            .snapshots
            .look(id, deadline)
            .await
            .map_err(wait(step()))?
        else {
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
