//! An injectable wall clock, for request signatures. Durations are measured with tokio's clock.

use std::fmt::Debug;

use jiff::{SignedDuration, Timestamp};

pub trait Clock: Debug + Send + Sync {
    fn now(&self) -> Timestamp;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the wall clock")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// The difference of the local clock from that of the cloud, for people.
#[must_use]
pub fn describe_difference(local_ahead: SignedDuration) -> String {
    let side = if local_ahead.is_negative() {
        "behind"
    } else {
        "ahead of"
    };
    let seconds = local_ahead.abs().as_secs();
    format!("the clock of this machine is {seconds} s {side} that of the cloud")
}

/// The clock of the fake cloud, which tests can pause and advance.
#[cfg(test)]
impl Clock for fake_ecs::TokioClock {
    fn now(&self) -> Timestamp {
        fake_ecs::Clock::now(self)
    }
}
