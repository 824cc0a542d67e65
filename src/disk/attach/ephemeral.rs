//! Confirming that a disk is an elastic ephemeral one.

use super::Attacher;
use crate::base::Deadline;
use crate::cloud::view::Observation;
use crate::cloud::{self, Condition};
use crate::model::DiskId;

impl Attacher {
    /// Whether the call was refused because it lacks `DeleteWithInstance`, and the disk is certainly an
    /// ephemeral one.
    pub(super) async fn is_ephemeral(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        refusal: &cloud::Error,
    ) -> bool {
        if refusal.condition() != Condition::DeletedWithNode {
            return false;
        }
        if let Ok(Observation::Row(row)) = self.disks.look(disk, deadline).await {
            self.journal.ephemeral.note(&row);
        }
        self.journal.ephemeral.contains(disk)
    }
}
