//! Detaching a disk from every node that holds it.

use super::Attacher;
use crate::base::Deadline;
use crate::cloud::view::{Observation, Presence};
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
    pub async fn detach_everywhere(&self, deadline: Deadline, disk: &DiskId) -> Result<()> {
        loop {
            let holders = self.holders(deadline, disk).await?;
            let mut is_proven = !holders.is_shared;
            for node in &holders.nodes {
                is_proven &= self.call(deadline, disk, node).detach().await?;
            }
            // The only node that could hold the disk has detached it, and no other call attaches it meanwhile. Otherwise
            // it takes reads that have caught up.
            if is_proven || holders.nodes.is_empty() {
                return Ok(());
            }
        }
    }

    /// The nodes that hold the disk; none once that is proven, or that there is no such disk. While the disk is attaching,
    /// no row names the node.
    async fn holders(&self, deadline: Deadline, disk: &DiskId) -> Result<Holders> {
        let step = || format!("detach disk {disk} from every node");
        let mut nobody = StaleReadGuard::default();
        loop {
            let decide = |observation: Observation<Disk>| match observation {
                Observation::Row(row) => self.shown_holders(&row, &mut nobody).map(Some),
                Observation::Missing { .. } => Some(None),
            };
            let shown = self.disks.until(disk, deadline, decide).await;
            if let Some(holders) = shown.map_err(wait(step()))? {
                return Ok(holders);
            }
            let found = self.disks.settle(disk, deadline).await;
            match found.map_err(wait(step()))? {
                Presence::Absent(_) => return Ok(Holders::default()),
                Presence::Row(_) => nobody.ends(),
            }
        }
    }

    /// The nodes that hold the disk, as far as its row shows that.
    fn shown_holders(&self, row: &Disk, nobody: &mut StaleReadGuard) -> Option<Holders> {
        let is_held = matches!(
            row.status,
            DiskStatus::Attaching | DiskStatus::InUse | DiskStatus::Detaching
        );
        if is_held && row.attachments.is_empty() {
            nobody.ends();
            return None;
        }
        // A row from before a detachment does not say which node holds the disk now.
        let holds = |node: &&InstanceId| !self.journal.detached.lately(&row.id, node);
        let nodes: Vec<_> = row.attachments.iter().filter(holds).cloned().collect();
        let is_proven = !nodes.is_empty() || nobody.holds(LAG);
        is_proven.then_some(Holders {
            nodes,
            is_shared: row.multi_attach,
        })
    }
}
