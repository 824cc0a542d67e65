//! Waiting until an attachment that the cloud has accepted is complete, or has certainly failed.

use tokio::time::Instant;

use super::call::Call;
use super::queue::Operation;
use crate::cloud::view::{self, Observation};
use crate::disk::Result;
use crate::disk::error::{Error, wait};
use crate::disk::stale_read::{LAG, StaleReadGuard, UNSEEN};
use crate::model::{Disk, DiskStatus};

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

impl Call<'_> {
    /// Waits until the attachment is complete.
    pub(super) async fn wait_attached(self) -> Result<Disk> {
        let attacher = self.attacher;
        let mut fall_back = FallBack::new();
        let decide = |observation: Observation<Disk>| {
            // A disk that is being attached cannot be deleted: its absence means that it is not visible.
            let Observation::Row(row) = observation else {
                return None;
            };
            if self.is_on(&row) {
                attacher.journal.note_attached(&row, self.node);
                return Some(Ok(Disk::clone(&row)));
            }
            if let Some(error) = self.elsewhere(&row) {
                return Some(Err(error));
            }
            let (disk, node) = self.ids();
            fall_back
                .is_proven(&row)
                .then_some(Err(Error::FellBack { disk, node }))
        };
        let waited = attacher
            .disks
            .until_done(self.disk, self.deadline, view::Operation::Attach, decide)
            .await;
        waited.map_err(wait(self.step(Operation::Attach)))?
    }
}
