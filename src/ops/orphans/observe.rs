//! Reads Kubernetes, then the cloud, then Kubernetes again, so that a volume that is created or deleted meanwhile is
//! not reported as an orphan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::sleep;

use super::finding::ResourceId;
use crate::base::{Clock, Deadline, error_chain, join_all};
use crate::cluster::volumes::{ContentKind, Volumes};
use crate::cluster::{self, Cluster};
use crate::disk::{self, DiskServices, READ_LAG};
use crate::model::{Disk, DriverName, Snapshot, SnapshotGroupId, Tags};

/// Limit of all cloud reads of a report.
const TIMEOUT: Duration = Duration::from_secs(300);

#[derive(Debug, Clone)]
pub struct Observed {
    /// When the cloud was listed.
    pub at: Timestamp,
    /// Kubernetes before the listing.
    pub before: Volumes,
    /// Kubernetes after the listing.
    pub after: Volumes,
    /// The disks of this cluster.
    pub disks: Vec<Disk>,
    /// The snapshots of this cluster.
    pub snapshots: Vec<Snapshot>,
    /// Whether the cloud shows a snapshot of any owner.
    pub any_snapshot_visible: bool,
    /// Handles in objects of this driver that are not in the two lists.
    pub others: BTreeMap<String, Presence>,
}

/// What the cloud has under a handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It is owned if the list did not have it yet.
    Found(Current),
    /// It certainly does not exist.
    Absent,
    /// The handle cannot be the ID of a resource.
    Invalid,
}

/// The current state of a disk or snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    pub tags: Tags,
    /// The group of a snapshot.
    pub group: Option<SnapshotGroupId>,
    pub created: Option<Timestamp>,
    /// Whether it has the tag of this cluster.
    pub is_owned: bool,
    /// The row of a disk.
    pub row: Option<Box<Disk>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    #[error("the volumes could not be listed completely from Kubernetes, so no disk is reported as unused")]
    Kubernetes(#[from] cluster::Error),
    #[error("the disks and snapshots could not be listed completely from the cloud")]
    Cloud(#[from] disk::Error),
}

impl ObserveError {
    /// The error with advice for the user of a kubeconfig.
    pub(super) fn for_user(&self) -> String {
        match self {
            Self::Kubernetes(error) => format!("{self}: {}", error.for_user()),
            Self::Cloud(_) => error_chain(self),
        }
    }
}

#[derive(Debug)]
pub struct Observer {
    pub cluster: Cluster,
    pub disks: Arc<DiskServices>,
    pub driver: DriverName,
    pub clock: Arc<dyn Clock>,
}

impl Observer {
    /// Reads everything.
    ///
    /// # Errors
    /// If a list fails, or an empty one proves nothing.
    pub async fn observe(&self) -> Result<Observed, ObserveError> {
        let before = self.volumes().await?;
        // Lists of the cloud may be this old, and show what was deleted or detached before.
        sleep(READ_LAG).await;
        let deadline = Deadline::after(TIMEOUT);
        let inventory = &self.disks.inventory;
        let at = self.clock.now();
        let disks = inventory.owned_disks(deadline).await?;
        let snapshots = inventory.owned_snapshots(deadline).await?;
        let any_snapshot_visible = !snapshots.is_empty() || inventory.any_snapshot_visible(deadline).await?;
        let after = self.volumes().await?;
        let mut observed = Observed {
            at,
            before,
            after,
            disks,
            snapshots,
            any_snapshot_visible,
            others: BTreeMap::new(),
        };
        observed.others = self.others(deadline, &observed).await?;
        Ok(observed)
    }

    /// Reads the volumes of Kubernetes.
    pub async fn volumes(&self) -> cluster::Result<Volumes> {
        self.cluster.read_volumes(&self.driver).await
    }

    /// Describes the handles that are not in the lists, each until it is certain.
    async fn others(
        &self,
        deadline: Deadline,
        observed: &Observed,
    ) -> Result<BTreeMap<String, Presence>, ObserveError> {
        let rows = observed.disks.iter().map(|row| row.id.as_str());
        let listed: BTreeSet<_> = rows
            .chain(observed.snapshots.iter().map(|row| row.id.as_str()))
            .collect();
        let volumes = observed.after.volumes.iter().map(|volume| volume.handle.as_str());
        let disks = volumes.map(|handle| (handle, handle.parse().ok().map(ResourceId::Disk)));
        let contents = observed.after.contents.iter();
        let contents = contents.filter(|content| content.kind == ContentKind::Snapshot);
        let snapshots = contents
            .filter_map(|content| content.handle.as_deref())
            .map(|handle| (handle, handle.parse().ok().map(ResourceId::Snapshot)));
        let wanted: BTreeMap<_, _> = disks.chain(snapshots).filter(|(id, _)| !listed.contains(id)).collect();
        let read = join_all(wanted.into_iter().map(|(handle, id)| async move {
            let presence = match id {
                Some(id) => self
                    .current(deadline, &id)
                    .await?
                    .map_or(Presence::Absent, Presence::Found),
                None => Presence::Invalid,
            };
            Ok::<_, disk::Error>((handle.to_owned(), presence))
        }))
        .await;
        Ok(read.into_iter().collect::<Result<_, _>>()?)
    }

    /// The current state of a resource; none if it certainly does not exist.
    pub(super) async fn current(&self, deadline: Deadline, id: &ResourceId) -> disk::Result<Option<Current>> {
        let inventory = &self.disks.inventory;
        Ok(match id {
            ResourceId::Disk(id) => inventory.find_disk(deadline, id).await?.map(|row| Current {
                is_owned: inventory.owns(&row.tags),
                tags: row.tags.clone(),
                group: None,
                created: row.created,
                row: Some(Box::new(row)),
            }),
            ResourceId::Snapshot(id) => inventory.find_snapshot(deadline, id).await?.map(|row| Current {
                is_owned: inventory.owns(&row.tags),
                tags: row.tags,
                group: row.group,
                created: row.created,
                row: None,
            }),
        })
    }
}
