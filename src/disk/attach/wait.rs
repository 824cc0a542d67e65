//! Waiting until an attachment that the cloud has accepted is there, or has certainly failed.

use super::Attacher;
use std::sync::Arc;

use tokio::time::Instant;

use super::attach::step;
use crate::base::Deadline;
use crate::cloud::view::{Operation, Seen};
use crate::disk::Result;
use crate::disk::error::{Error, wait};
use crate::disk::stale_read::{LAG, StaleReadGuard, UNSEEN};
use crate::model::{Disk, DiskId, DiskStatus, InstanceId};

/// When a look that shows the disk free means that the attachment has failed, and not that the look is
/// of before it.
///
/// A look shows a state that is at most [`LAG`] old. So one that was begun that long after the attachment
/// was accepted is of after it: if the disk has been seen on its way before, it has fallen back. If it
/// never was, reads may be older than they should be, and more of them must agree.
#[derive(Debug)]
struct FallBack {
    accepted: Instant,
    /// When the look before this one had ended: this one was begun after that.
    looked: Option<Instant>,
    attaching: bool,
    free: StaleReadGuard,
}

impl FallBack {
    fn new() -> Self {
        Self {
            accepted: Instant::now(),
            looked: None,
            attaching: false,
            free: StaleReadGuard::default(),
        }
    }

    /// A look; true once it proves that the attachment has failed.
    fn proven(&mut self, row: &Disk) -> bool {
        let begun = self.looked.replace(Instant::now());
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
        let mut missing = StaleReadGuard::default();
        let decide = |seen: Seen<Disk>| {
            let row: Arc<Disk> = match seen {
                Seen::Row(row) => row,
                Seen::Missing { .. } => {
                    let gone = Error::NoSuchDisk { disk: disk.clone() };
                    return missing.holds(LAG).then_some(Err(gone));
                }
                Seen::Failed(_) => return None,
            };
            missing.ends();
            if self.is_on(&row, node) {
                self.journal.attached.note(&row, node);
                return Some(Ok(Disk::clone(&row)));
            }
            if let Some(error) = self.elsewhere(&row, node) {
                return Some(Err(error));
            }
            let fell = Error::FellBack {
                disk: disk.clone(),
                node: node.clone(),
            };
            fall_back.proven(&row).then_some(Err(fell))
        };
        let waited = self
            .disks
            .until_done(disk, deadline, Operation::Attach, decide)
            .await;
        waited.map_err(wait(step(disk, node)))?
    }

    /// Whether the row shows the disk in use on the node, and not only as it was before it left.
    pub(super) fn is_on(&self, row: &Disk, node: &InstanceId) -> bool {
        row.is_in_use_on(node) && !self.journal.detached.is_before(row, node)
    }

    /// The refusal, when another node has the disk in use and has not let go of it just now.
    pub(super) fn elsewhere(&self, row: &Disk, node: &InstanceId) -> Option<Error> {
        let holder = self.holders_beside(row, node).next()?;
        (row.status == DiskStatus::InUse && !row.multi_attach).then(|| Error::InUseElsewhere {
            disk: row.id.clone(),
            node: node.clone(),
            holder: holder.clone(),
        })
    }

    /// The other nodes that hold the disk and have not let go of it just now.
    pub(super) fn holders_beside<'a>(
        &'a self,
        row: &'a Disk,
        node: &'a InstanceId,
    ) -> impl Iterator<Item = &'a InstanceId> {
        let has = move |holder: &&InstanceId| {
            *holder != node && !self.journal.detached.lately(&row.id, holder)
        };
        row.attachments.iter().filter(has)
    }
}
