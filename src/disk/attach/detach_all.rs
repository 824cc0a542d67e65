//! Detaching a disk from every node that holds it.

use super::Attacher;
use crate::base::Deadline;
use crate::cloud::view::Observation;
use crate::disk::Result;
use crate::disk::error::wait;
use crate::disk::stale_read::{LAG, StaleReadGuard};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

/// The nodes that hold a disk.
#[derive(Debug, Default)]
struct Holders {
    nodes: Vec<InstanceId>,
    /// Whether several nodes can hold it.
    is_shared: bool,
}

impl Attacher {
    /// Detaches the disk from every node that holds it (CSI: an empty node id).
    ///
    /// # Errors
    /// As [`Attacher::detach`].
    pub async fn detach_everywhere(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        loop {
            let holders = self.holders(deadline, disk).await?;
            let mut is_proven = !holders.is_shared;
            for node in &holders.nodes {
                let detached = self.detach_tracked(deadline, disk, node).await?;
                is_proven &= detached.was_held;
            }
            // The only node that could hold the disk has detached it, and no other call attaches it meanwhile. Otherwise
            // it takes reads that have caught up.
            if is_proven || holders.nodes.is_empty() {
                return Ok(());
            }
        }
    }

    /// The nodes that hold the disk; none once that is proven. While it is attaching, no row names the node.
    async fn holders(&self, deadline: Deadline, disk: &DiskId) -> Result<Holders> {
        let mut nobody = StaleReadGuard::default();
        let decide = |observation: Observation<Disk>| {
            let holders = match observation {
                Observation::Row(row) => {
                    let is_held = matches!(
                        row.status,
                        DiskStatus::Attaching | DiskStatus::InUse | DiskStatus::Detaching
                    );
                    if is_held && row.attachments.is_empty() {
                        nobody.ends();
                        return None;
                    }
                    // A row from before a detachment does not say which node holds the disk now.
                    let holds = |node: &&InstanceId| !self.journal.detached.lately(disk, node);
                    Holders {
                        nodes: row.attachments.iter().filter(holds).cloned().collect(),
                        is_shared: row.multi_attach,
                    }
                }
                // Our own deletion explains it.
                Observation::Missing { .. } if self.journal.disks.known().is_gone(disk) => {
                    return Some(Holders::default());
                }
                Observation::Missing { witnessed: true } => Holders::default(),
                Observation::Missing { witnessed: false } => {
                    nobody.ends();
                    return None;
                }
                Observation::Failed(_) => return None,
            };
            (!holders.nodes.is_empty() || nobody.holds(LAG)).then_some(holders)
        };
        let waited = self.disks.until(disk, deadline, decide).await;
        waited.map_err(wait(format!("detach disk {disk} from every node")))
    }
}
