//! Decides when reads that contradict an earlier response of the cloud are believed: after a time, not after a number of
//! reads, because reads are shared and can be simultaneous.

use std::time::Duration;

use tokio::time::Instant;

pub(super) use crate::cloud::view::READ_LAG;

/// How long what the cloud says it made may be missing from every description. Believing that it is
/// gone any sooner would make a second one.
pub(super) const UNSEEN: Duration = Duration::from_secs(10);

/// A series of reads that contradict a response of the cloud.
#[derive(Debug, Default)]
pub(super) struct StaleReadGuard(Option<Instant>);

impl StaleReadGuard {
    /// Records a contradicting read; true once the reads have contradicted for this long.
    pub(super) fn holds(&mut self, long: Duration) -> bool {
        self.0.get_or_insert_with(Instant::now).elapsed() >= long
    }

    pub(super) fn ends(&mut self) {
        self.0 = None;
    }
}
