//! Waiting for the cloud, shared: however many calls wait, one description a tick tells them all,
//! 100 ids at a time; nobody waiting costs nothing.
//!
//! Whoever waits for an order learns of its end with the next look: on the average half of what lies
//! between two is lost, and weighs most where the order takes a second or two. So while one is young,
//! looks are twice as close; later, when they would only cost calls, they are not.

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
    /// Before the first description of a wait, and between two.
    pub tick: Duration,
    /// Between two descriptions, while somebody waits for the end of an order and began to less than
    /// `young` ago.
    pub brisk: Duration,
    /// For how long an order is young.
    pub young: Duration,
    /// How long a single look waits for others to share its call.
    pub linger: Duration,
}

impl Pace {
    /// From a description to the next, for one who waits.
    fn after(self, is_young: bool) -> Duration {
        if is_young { self.brisk } else { self.tick }
    }
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
