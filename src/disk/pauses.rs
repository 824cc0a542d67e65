//! Growing pauses between attempts at an order that the cloud refuses for now. Each attempt is a call that counts
//! against a quota, and what it waits for may take seconds or many minutes.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

use crate::base::{Deadline, Elapsed};

const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);

/// A sequence of pauses, each twice as long as the one before up to a bound, with a little jitter.
#[derive(Debug)]
pub(super) struct Pauses(ExponentialBackoff);

impl Default for Pauses {
    fn default() -> Self {
        Self::between(SHORTEST, LONGEST)
    }
}

impl Pauses {
    pub(super) fn between(shortest: Duration, longest: Duration) -> Self {
        let schedule = ExponentialBuilder::new()
            .without_max_times()
            .with_min_delay(shortest)
            .with_max_delay(longest);
        Self(schedule.build())
    }

    pub(super) fn next(&mut self) -> Duration {
        let pause = self.0.next().unwrap_or(LONGEST);
        // backon's own jitter doubles a pause at worst.
        let jitter = RandomState::new().hash_one(pause) % 64;
        pause + pause / 640 * u32::try_from(jitter).unwrap_or(0)
    }

    /// Waits for the next pause, unless the deadline comes first.
    pub(super) async fn pause(&mut self, deadline: Deadline) -> Result<(), Elapsed> {
        deadline.bound(tokio::time::sleep(self.next())).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_vary_by_a_tenth() {
        let mut pauses = Pauses::default();
        for expected in [500, 1000, 2000, 4000, 8000, 8000, 8000] {
            let pause = pauses.next();
            let expected = Duration::from_millis(expected);
            assert!(
                pause >= expected && pause <= expected * 11 / 10,
                "{pause:?}"
            );
        }
    }
}
