//! Since when this process is the leader. Until then, another replica may have sent requests: the sidecars elect the
//! leader, and a standby becomes the leader with its first call.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Idle time after which another replica may have been the leader meanwhile.
const IDLE: Duration = Duration::from_secs(60);

/// When this process became the leader, and its last call.
#[derive(Debug, Default)]
pub(in crate::disk) struct Activity(Mutex<Option<(Instant, Instant)>>);

impl Activity {
    /// Records the start of a call that may change resources.
    pub(in crate::disk) fn record_call(&self) {
        let now = Instant::now();
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = times.filter(|(_, last)| now - *last < IDLE);
        *times = Some((known.map_or(now, |(since, _)| since), now));
    }

    /// The time before which other replicas sent all their requests.
    pub(in crate::disk) fn active_since(&self) -> Instant {
        let times = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.map_or_else(Instant::now, |(since, _)| since)
    }
}
