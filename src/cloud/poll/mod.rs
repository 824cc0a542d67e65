//! Waiting for the cloud, shared: however many calls wait, one description a tick tells them all,
//! 100 ids at a time; nobody waiting costs nothing.
//!
//! Whoever waits for an order learns of its end with the next look: on the average half of what lies
//! between two is lost, and weighs most where the order takes a second or two. So while one is young,
//! looks are twice as close; later, when they would only cost calls, they are not.

use std::time::Duration;

mod calm;
mod found;
mod round;
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
    /// The same while somebody waits for the end of an order and began to less than `young` ago. Not with
    /// more than [`IDS_A_CALL`] who wait, nor for an hour after a look was refused or held up. At most
    /// a tick.
    pub brisk: Duration,
    /// For how long the wait for an order is young.
    pub young: Duration,
    /// How long a single look waits for others to share its call.
    pub linger: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            tick: Duration::from_millis(500),
            brisk: Duration::from_millis(250),
            young: Duration::from_secs(3),
            linger: Duration::from_millis(50),
        }
    }
}
