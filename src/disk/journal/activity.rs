//! Since when this process is the one that orders. Another replica may have ordered until then: leader election is done by
//! the sidecars, and a standby learns that it leads from its first call.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// After so long without a call, another replica may have taken over and given back.
const IDLE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(in crate::disk) struct Activity(Mutex<Option<Times>>);

#[derive(Debug, Clone, Copy)]
struct Times {
    since: Instant,
    last: Instant,
}

impl Activity {
    /// A call that may order something begins.
    pub(in crate::disk) fn note(&self) {
        let now = Instant::now();
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = times.is_none_or(|times| now - times.last >= IDLE);
        let times = times.get_or_insert(Times {
            since: now,
            last: now,
        });
        times.last = now;
        if is_new {
            times.since = now;
        }
    }

    /// Whatever other replicas have ordered, they ordered before this.
    pub(in crate::disk) fn since(&self) -> Instant {
        let times = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.map_or_else(Instant::now, |times| times.since)
    }
}
