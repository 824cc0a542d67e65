//! Pauses after throttling errors, for a cloud interface without a rate limiter of its own: while a quota is used up,
//! each further call is refused and counts against the account.

use std::time::Duration;

use tokio::time::Instant;

use crate::cloud::error::{Error, Kind};

const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(10);

/// When the next poll may be sent.
#[derive(Debug, Default)]
pub(super) struct ThrottleBackoff {
    until: Option<Instant>,
    pause: Duration,
}

impl ThrottleBackoff {
    /// The end of the pause, if there is one.
    pub(super) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }

    /// Takes in the outcome of a call sent then. Calls sent beside each other are one attempt.
    pub(super) fn after(&mut self, sent: Instant, failure: Option<&Error>) {
        if self.until.is_some_and(|until| sent < until) {
            return;
        }
        let Some(error) = failure.filter(|error| error.kind() == Kind::Throttled) else {
            *self = Self::default();
            return;
        };
        self.pause = (self.pause * 2).clamp(SHORTEST, LONGEST);
        let pause = error.wait().unwrap_or_default().max(self.pause);
        self.until = Some(Instant::now() + pause);
    }
}
