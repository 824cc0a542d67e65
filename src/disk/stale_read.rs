//! Decides when reads that contradict an earlier response of the cloud are accepted: after a time, not after a number
//! of reads, because reads are shared and can be simultaneous.

use std::time::Duration;

use tokio::time::Instant;

pub(super) use super::evidence::READ_LAG;

/// How long a created resource may be missing from every response. Accepting its absence earlier would create another.
pub(super) const VISIBILITY_LAG: Duration = Duration::from_secs(10);

/// A series of reads that contradict a response of the cloud.
#[derive(Debug, Default)]
pub(super) struct StaleReadGuard(Option<Instant>);

impl StaleReadGuard {
    /// Records a contradicting read. True once all reads have contradicted for this duration.
    pub(super) fn confirmed_after(&mut self, duration: Duration) -> bool {
        self.0.get_or_insert_with(Instant::now).elapsed() >= duration
    }

    pub(super) fn reset(&mut self) {
        self.0 = None;
    }
}
