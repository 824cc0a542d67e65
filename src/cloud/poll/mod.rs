//! Waiting for the cloud, shared: however many calls wait, one description a tick tells them all,
//! 100 ids at a time; nobody waiting costs nothing.

use std::time::Duration;

mod calm;
mod found;
mod seen;
mod subject;
mod watch;

pub use seen::{Seen, WaitError};
pub use watch::Watch;

/// Ids that one description takes (ECS API, `DiskIds` and `SnapshotIds`).
pub const IDS_A_CALL: usize = 100;

/// How often the cloud is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two descriptions, for those who wait for a change.
    pub tick: Duration,
    /// How long a single look waits for others to share its call.
    pub linger: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            tick: Duration::from_millis(500),
            linger: Duration::from_millis(50),
        }
    }
}
