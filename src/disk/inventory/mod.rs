use ecs::poll::Poller;

use super::Result;
use super::dependencies::Dependencies;
use super::error::{cloud, rejected, wait};
use super::evidence::Rows;
use super::owned::OwnedResource;
use super::read::read_disk;
use crate::base::Deadline;
use crate::model::{Disk, DiskHealth, DiskId, Failure, Snapshot, SnapshotId, Tags};

mod health;
mod instance_types;
mod instances;
mod list;

pub use health::{UnhealthyVolume, health_issues};
pub use instance_types::InstanceTypeCatalog;
pub use instances::{InstanceStates, Instances};
pub use list::{Cursor, InvalidCursor};

#[derive(Debug)]
pub struct Inventory {
    shared: Dependencies,
    disk_health: Poller<DiskId, DiskHealth>,
}

impl Inventory {
    pub(super) fn new(shared: &Dependencies, disk_health: Poller<DiskId, DiskHealth>) -> Self {
        Self {
            shared: shared.clone(),
            disk_health,
        }
    }

    /// Reads the disk, or returns [`super::Error::NoSuchDisk`] if it certainly does not exist.
    pub async fn disk(&self, deadline: Deadline, disk: &DiskId) -> Result<Disk> {
        read_disk(&self.shared.disks, deadline, disk).await
    }

    /// The disks of this cluster. Fails if there are none and the account lists no disk of another owner either: then
    /// the list proves nothing.
    pub async fn owned_disks(&self, deadline: Deadline) -> Result<Vec<Disk>> {
        let disks = self.list(deadline, Disk::clone).await?;
        if disks.is_empty() && !self.any_visible::<Disk>(deadline).await? {
            let text = "the cloud lists no disks of any owner: the access key lacks ecs:DescribeDisks, its policy is limited \
                        to other resources, or the region is wrong; an empty list proves nothing";
            return Err(rejected(Failure::EmptyResponse, text, None));
        }
        Ok(disks)
    }

    /// The snapshots of this cluster, also temporary and incomplete ones.
    pub async fn owned_snapshots(&self, deadline: Deadline) -> Result<Vec<Snapshot>> {
        self.read_owned(deadline, &self.shared.journal.snapshots, Some).await
    }

    pub async fn any_snapshot_visible(&self, deadline: Deadline) -> Result<bool> {
        self.any_visible::<Snapshot>(deadline).await
    }

    /// The disk for a report; `None` if no response contains it, which does not prove that it does not exist.
    pub async fn find_disk(&self, deadline: Deadline, id: &DiskId) -> Result<Option<Disk>> {
        find(&self.shared.disks, deadline, id).await
    }

    pub async fn find_snapshot(&self, deadline: Deadline, id: &SnapshotId) -> Result<Option<Snapshot>> {
        find(&self.shared.snapshots, deadline, id).await
    }

    pub fn owns(&self, tags: &Tags) -> bool {
        self.shared.owner.owns(tags)
    }

    async fn any_visible<V: OwnedResource>(&self, deadline: Deadline) -> Result<bool> {
        let page = V::list_page(&self.shared.ecs, deadline, Tags::new(), None).await;
        let page = page.map_err(cloud(format!("list the {}s", V::KIND)))?;
        Ok(!page.rows.is_empty() || !page.unreadable.is_empty())
    }
}

async fn find<V: OwnedResource>(rows: &Rows<V>, deadline: Deadline, id: &V::Id) -> Result<Option<V>> {
    let found = rows.find(deadline, id).await;
    let found = found.map_err(wait(format!("read {} {id}", V::KIND)))?;
    Ok(found.map(|row| V::clone(&row)))
}
