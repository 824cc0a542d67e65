//! Since when this process is the one that orders. Another replica may have ordered until then: leader election is done by
//! the sidecars, and a standby learns that it leads from its first call.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// After so long without a call, another replica may have taken over and given back.
const IDLE: Duration = Duration::from_secs(60);

/// Since when this process orders, and its last call.
#[derive(Debug, Default)]
pub(in crate::disk) struct Activity(Mutex<Option<(Instant, Instant)>>);

impl Activity {
    /// A call that may order something begins.
    pub(in crate::disk) fn note(&self) {
        let now = Instant::now();
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = times.filter(|(_, last)| now - *last < IDLE);
        *times = Some((known.map_or(now, |(since, _)| since), now));
    }

    /// Whatever other replicas have ordered, they ordered before this.
    pub(in crate::disk) fn since(&self) -> Instant {
        let times = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        times.map_or_else(Instant::now, |(since, _)| since)
    }
}
