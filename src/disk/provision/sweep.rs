//! When snapshots that interrupted clones left behind are looked for.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Between two looks for the snapshots of clones that others left.
const SWEEP: Duration = Duration::from_secs(600);

/// When it was last looked for what others left.
#[derive(Debug, Default)]
pub(super) struct Sweep(Mutex<Option<Instant>>);

impl Sweep {
    pub(super) fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|last| last.elapsed() >= SWEEP);
        if due {
            *last = Some(Instant::now());
        }
        due
    }
}
