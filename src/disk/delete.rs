//! Deleting a disk that is ours and that nobody holds.

use std::time::Duration;

use super::error::{Error, cloud, wait};
use super::{Disks, Result};
use crate::base::Deadline;
use crate::cloud::Kind;
use crate::cloud::poll::Seen;
use crate::model::{Disk, DiskId, InstanceId, tag};

/// How long a new disk may be missing from a description (eventual consistency of `DescribeDisks`).
/// Believing "not there" any sooner would leave a disk behind that nobody deletes.
const LAG: Duration = Duration::from_secs(3);

impl Disks {
    /// Deletes the disk. One that is not there is success.
    ///
    /// # Errors
    /// [`Error::StillAttached`] and [`Error::NotOurs`], when nothing was done.
    pub async fn delete(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        let step = || format!("delete disk {disk}");
        loop {
            let Some(row) = self.settled(deadline, disk).await? else {
                return Ok(());
            };
            self.owns(&row.tags).map_err(|owner| Error::NotOurs {
                what: format!("disk {disk}"),
                tag: tag::CLUSTER,
                owner,
                cluster: self.cluster.clone(),
            })?;
            if !row.attachments.is_empty() {
                let holders: Vec<_> = row.attachments.iter().map(InstanceId::as_str).collect();
                let holders = holders.join(" and ");
                return Err(Error::StillAttached {
                    disk: disk.clone(),
                    holders,
                });
            }
            match self.ecs.delete_disk(deadline, disk).await {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == Kind::NotFound => return Ok(()),
                // Still loading from its snapshot, or on its way off a node: look again in a tick.
                Err(error) if error.kind() == Kind::Conflict => {
                    let next = |seen| matches!(seen, Seen::Row(_) | Seen::Nothing).then_some(());
                    self.disks
                        .until(disk, deadline, next)
                        .await
                        .map_err(|_| cloud(step())(error))?;
                }
                Err(error) => return Err(cloud(step())(error)),
            }
        }
    }

    /// The disk, or none once that can be believed.
    async fn settled(&self, deadline: Deadline, disk: &DiskId) -> Result<Option<Disk>> {
        let step = || format!("look at disk {disk} before deleting it");
        let row = self
            .disks
            .look(disk, deadline)
            .await
            .map_err(wait(step()))?;
        if let Some(row) = row {
            return Ok(Some(Disk::clone(&row)));
        }
        let believed = Deadline::after(LAG);
        let until = |seen| match seen {
            Seen::Row(row) => Some(Some(Disk::clone(&row))),
            Seen::Nothing => believed.is_over().then_some(None),
            Seen::Failed(_) => None,
        };
        self.disks
            .until(disk, deadline, until)
            .await
            .map_err(wait(step()))
    }
}
