//! Exponential backoff between retries, because each one counts against an API quota.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::base::{Deadline, Elapsed};

/// Delays that double up to a maximum, with up to 10 % jitter.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Duration::from_millis(500), Duration::from_secs(8))
    }
}

impl Backoff {
    pub(super) fn new(min: Duration, max: Duration) -> Self {
        Self { next: min, max }
    }

    pub(super) fn next_delay(&mut self) -> Duration {
        let delay = self.next;
        self.next = self.max.min(delay * 2);
        let jitter = RandomState::new().hash_one(delay) % 64;
        delay + delay / 640 * u32::try_from(jitter).unwrap_or(0)
    }

    pub(super) async fn wait(&mut self, deadline: Deadline) -> Result<(), Elapsed> {
        deadline.bound(tokio::time::sleep(self.next_delay())).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_maximum_with_jitter() {
        let mut backoff = Backoff::default();
        for expected in [500, 1000, 2000, 4000, 8000, 8000, 8000] {
            let delay = backoff.next_delay();
            let expected = Duration::from_millis(expected);
            assert!(delay >= expected && delay <= expected * 11 / 10, "{delay:?}");
        }
    }
}
