//! Lists the volumes that may be published, for CSI `LIST_VOLUMES_PUBLISHED_NODES`: csi-attacher publishes every volume
//! again whose attachment the list lacks.

use std::sync::atomic::{AtomicBool, Ordering};

use ecs::DescribeDisks;

use super::Inventory;
use super::list::with_recent;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::error::rejected;
use crate::disk::owned::PAGE;
use crate::model::{Disk, DiskKind, Failure};

impl Inventory {
    /// Maps each disk of this cluster, and each other data disk of the account that is attached, with `map`, oldest
    /// first: the disk of a PersistentVolume need not have the cluster's tag. So all disks of the account in the region
    /// are read.
    ///
    /// # Errors
    /// If the response contains nothing that must be visible: it may be that of another account, or of a lagging index.
    pub async fn list_published<T: Send>(
        &self,
        deadline: Deadline,
        map: impl Fn(&Disk) -> T + Send + Sync,
    ) -> Result<Vec<T>> {
        let changes = self.journal.disks.recent_changes();
        let nodes = self.journal.published.nodes();
        let has_canary = AtomicBool::new(false);
        let is_listed = |row: &Disk| {
            let is_owned = self.owner.owns(&row.tags);
            if is_owned || row.attachments.iter().any(|node| nodes.contains(node)) {
                has_canary.store(true, Ordering::Relaxed);
            }
            let is_attached = || !row.attachments.is_empty() || !self.journal.published.nodes_of(&row.id).is_empty();
            is_owned || row.kind == DiskKind::Data && is_attached()
        };
        let item = |row: Disk| Some(map(&self.with_recent_holders(row)));
        let page = |next| async move {
            let query = DescribeDisks {
                page_size: Some(PAGE),
                next,
                ..DescribeDisks::default()
            };
            self.ecs.describe_disks(deadline, &query).await
        };
        let rows = self.read_pages("disks", page, &changes, &is_listed, &item);
        let rows = rows.await?;
        if has_canary.into_inner() {
            return Ok(with_recent(rows.items, changes, item));
        }
        let text = "the cloud lists neither a disk of this cluster nor one of its nodes: its index lags, the access key lacks the \
                    permission to describe them or belongs to another account, or the cluster has no volume yet";
        Err(rejected(Failure::EmptyResponse, text.to_owned(), None))
    }
}
