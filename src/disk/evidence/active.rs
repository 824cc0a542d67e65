//! Since when this process is the active controller. Earlier, another process may have sent requests.

use tokio::time::Instant;

use super::READ_LAG;
use crate::base::{Deadline, Elapsed};

/// The disk services are created when the process becomes active, and end with it.
#[derive(Debug, Clone, Copy)]
pub(in crate::disk) struct Active {
    pub(in crate::disk) since: Instant,
}

impl Active {
    /// Whether a read that begins now may be older than a change by the previous controller.
    pub(in crate::disk) fn is_new(self) -> bool {
        self.since.elapsed() < READ_LAG
    }

    /// Waits until reads are not older than a change by the previous controller.
    pub(super) async fn settle(self, deadline: Deadline) -> Result<(), Elapsed> {
        let settled = tokio::time::sleep_until(self.since + READ_LAG);
        deadline.bound(settled).await
    }
}
