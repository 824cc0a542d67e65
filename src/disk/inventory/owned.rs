//! Complete lists of the resources of this cluster, for comparison with Kubernetes.

use super::Inventory;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::error::{cloud, rejected, wait};
use crate::disk::owned::OwnedResource;
use crate::model::{Disk, DiskId, Failure, Snapshot, SnapshotId, Tags};

impl Inventory {
    /// The disks of this cluster. Fails if there are none and the account sees no disk of another owner either: then
    /// the list proves nothing.
    pub async fn owned_disks(&self, deadline: Deadline) -> Result<Vec<Disk>> {
        let disks = self.list(deadline, Disk::clone).await?;
        if disks.is_empty() && !self.any_visible::<Disk>(deadline, "disks").await? {
            let text = "the cloud lists no disks of any owner: the access key lacks ecs:DescribeDisks, its policy is limited \
                        to other resources, or the region is wrong; an empty list proves nothing";
            return Err(rejected(Failure::EmptyResponse, text, None));
        }
        Ok(disks)
    }

    /// The snapshots of this cluster, also temporary and incomplete ones.
    pub async fn owned_snapshots(&self, deadline: Deadline) -> Result<Vec<Snapshot>> {
        let changes = self.journal.snapshots.recent_changes();
        let (recent, filter) = (&self.journal.snapshots, &self.snapshot_filter);
        let rows = self.read_owned(deadline, "snapshots", recent, filter, &changes, &Some);
        Ok(rows.await?.into_iter().map(|(_, row)| row).collect())
    }

    /// Whether the cloud shows a snapshot of any owner.
    pub async fn any_snapshot_visible(&self, deadline: Deadline) -> Result<bool> {
        self.any_visible::<Snapshot>(deadline, "snapshots").await
    }

    /// The disk for a report; `None` if no response contains it, which does not prove that it does not exist.
    pub async fn find_disk(&self, deadline: Deadline, id: &DiskId) -> Result<Option<Disk>> {
        let found = self.disks.find(deadline, id).await;
        let found = found.map_err(wait(format!("read disk {id}")))?;
        Ok(found.map(|row| Disk::clone(&row)))
    }

    /// As [`Self::find_disk`], a snapshot.
    pub async fn find_snapshot(&self, deadline: Deadline, id: &SnapshotId) -> Result<Option<Snapshot>> {
        let found = self.snapshots.find(deadline, id).await;
        let found = found.map_err(wait(format!("read snapshot {id}")))?;
        Ok(found.map(|row| Snapshot::clone(&row)))
    }

    /// Whether these are the tags of a resource of this cluster.
    #[must_use]
    pub fn owns(&self, tags: &Tags) -> bool {
        self.owner.owns(tags)
    }

    async fn any_visible<V: OwnedResource>(&self, deadline: Deadline, kind: &str) -> Result<bool> {
        let page = V::list_page(&self.ecs, deadline, Tags::new(), None).await;
        let page = page.map_err(cloud(format!("list the {kind}")))?;
        Ok(!page.rows.is_empty() || !page.unreadable.is_empty())
    }
}
