//! Exponential backoff between retries, because each one counts against an API quota.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

use crate::base::{Deadline, Elapsed};

const MIN_DELAY: Duration = Duration::from_millis(500);
const MAX_DELAY: Duration = Duration::from_secs(8);

/// Delays that double up to a maximum, with up to 10 % jitter.
#[derive(Debug)]
pub(super) struct Backoff(ExponentialBackoff);

impl Default for Backoff {
    fn default() -> Self {
        Self::new(MIN_DELAY, MAX_DELAY)
    }
}

impl Backoff {
    pub(super) fn new(min: Duration, max: Duration) -> Self {
        let schedule = ExponentialBuilder::new()
            .without_max_times()
            .with_min_delay(min)
            .with_max_delay(max);
        Self(schedule.build())
    }

    pub(super) fn next_delay(&mut self) -> Duration {
        let delay = self.0.next().unwrap_or(MAX_DELAY);
        // The jitter of backon can double a delay.
        delay + delay / 640 * fastrand::u32(..64)
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
