//! Waiting until an attachment that the cloud has accepted is complete, or has certainly failed.

use tokio::time::Instant;

use super::Attacher;
use crate::base::Deadline;
use crate::cloud::view::{Observation, Operation};
use crate::disk::Result;
use crate::disk::error::{Error, wait};
use crate::disk::stale_read::{LAG, StaleReadGuard, UNSEEN};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

/// When a row that shows the disk free means that the attachment has failed, and not that the row is from before it.
///
/// A row is at most [`LAG`] old. So a read that began that long after the attachment was accepted is from after it: if the
/// disk has been observed attaching before, it has fallen back. If not, rows may be older than they should be, and more of
/// them must agree.
#[derive(Debug)]
struct FallBack {
    accepted: Instant,
    /// The end of the read before this one, which therefore began later.
    last_read: Option<Instant>,
    attaching: bool,
    free: StaleReadGuard,
}

impl FallBack {
    fn new() -> Self {
        Self {
            accepted: Instant::now(),
            last_read: None,
            attaching: false,
            free: StaleReadGuard::default(),
        }
    }

    /// Takes in a row. True once it is proven that the attachment has failed.
    fn is_proven(&mut self, row: &Disk) -> bool {
        let begun = self.last_read.replace(Instant::now());
        self.attaching |= row.status == DiskStatus::Attaching;
        if !row.is_free() {
            self.free.ends();
            return false;
        }
        let long = self.free.holds(UNSEEN);
        let after = begun.is_some_and(|begun| begun.duration_since(self.accepted) >= LAG);
        long || self.attaching && after
    }
}

impl Attacher {
    pub(super) async fn wait_attached(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
    ) -> Result<Disk> {
        let mut fall_back = FallBack::new();
        let decide = |observation: Observation<Disk>| {
            // A disk that is being attached cannot be deleted: its absence means that it is not visible.
            let Observation::Row(row) = observation else {
                return None;
            };
            if self.is_on(&row, node) {
                self.journal.attached.note(&row, node);
                return Some(Ok(Disk::clone(&row)));
            }
            if let Some(error) = self.elsewhere(&row, node) {
                return Some(Err(error));
            }
            fall_back.is_proven(&row).then(|| {
                Err(Error::FellBack {
                    disk: disk.clone(),
                    node: node.clone(),
                })
            })
        };
        let waited = self
            .disks
            .until_done(disk, deadline, Operation::Attach, decide)
            .await;
        waited.map_err(wait(format!("attach disk {disk} to node {node}")))?
    }

    /// Whether the row shows the disk in use on the node, and is not from before it was detached there.
    pub(super) fn is_on(&self, row: &Disk, node: &InstanceId) -> bool {
        row.is_in_use_on(node) && !self.journal.detached.is_before(row, node)
    }

    /// The error when another node has the disk in use, unless the row is from before that node detached it.
    pub(super) fn elsewhere(&self, row: &Disk, node: &InstanceId) -> Option<Error> {
        let holder = self.other_holders(row, node).next()?;
        (row.status == DiskStatus::InUse && !row.multi_attach).then(|| Error::InUseElsewhere {
            disk: row.id.clone(),
            node: node.clone(),
            holder: holder.clone(),
        })
    }

    /// The other nodes that hold the disk, without those that have just detached it.
    pub(super) fn other_holders<'a>(
        &'a self,
        row: &'a Disk,
        node: &'a InstanceId,
    ) -> impl Iterator<Item = &'a InstanceId> {
        let holds = move |holder: &&InstanceId| {
            *holder != node && !self.journal.detached.lately(&row.id, holder)
        };
        row.attachments.iter().filter(holds)
    }
}
