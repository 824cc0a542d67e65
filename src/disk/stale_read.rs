//! When to believe what descriptions show, or do not show, against what the cloud's answers say. By
//! time and not by looks: looks are shared, and many can fall into one moment.

use std::time::Duration;

use tokio::time::Instant;

pub(super) use crate::cloud::view::LAG;

/// How long what the cloud says it made may be missing from every description. Believing that it is
/// gone any sooner would make a second one.
pub(super) const UNSEEN: Duration = Duration::from_secs(10);

/// Looks that contradict an answer of the cloud, without a break.
#[derive(Debug, Default)]
pub(super) struct StaleReadGuard(Option<Instant>);

impl StaleReadGuard {
    /// A look contradicts; true once the looks have done so for this long.
    pub(super) fn holds(&mut self, long: Duration) -> bool {
        self.0.get_or_insert_with(Instant::now).elapsed() >= long
    }

    pub(super) fn ends(&mut self) {
        self.0 = None;
    }
}
