//! Confirming that a disk is an elastic ephemeral one.

use super::Attacher;
use crate::base::Deadline;
use crate::cloud;
use crate::cloud::view::Look;
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
        const CODES: [&str; 2] = [
            "InvalidParameter.DeleteWithInstance",
            "InvalidOperation.DiskCategoryUnsupported",
        ];
        if !refusal.code().is_some_and(|code| CODES.contains(&code)) {
            return false;
        }
        if let Ok(Look::Row(row)) = self.disks.look(disk, deadline).await {
            self.journal.ephemeral.note(&row);
        }
        self.journal.ephemeral.contains(disk)
    }
}
