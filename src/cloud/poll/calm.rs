//! Patience after a throttling answer: for the rest of the window each further call is refused, and
//! counts against the account.

use std::time::Duration;

use tokio::time::Instant;

use crate::cloud::error::{Error, Kind};

/// The pauses when the cloud does not say how long to wait: doubled with each refusal.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(10);
/// For how long a refusal is remembered: as often as that, descriptions may be too many again.
const MEMORY: Duration = Duration::from_hours(1);

/// When the next description may be asked for.
#[derive(Debug, Default)]
pub(super) struct Calm {
    until: Option<Instant>,
    pause: Option<Duration>,
    refused: Option<Instant>,
}

impl Calm {
    /// Not before this instant, if any.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether the cloud has refused no description lately.
    pub(super) fn is_unbroken(&self) -> bool {
        self.refused.is_none_or(|at| at.elapsed() >= MEMORY)
    }

    /// Takes in how a description ended.
    pub(super) fn after(&mut self, failure: Option<&Error>) {
        let Some(error) = failure.filter(|error| error.kind() == Kind::Throttled) else {
            (self.until, self.pause) = (None, None);
            return;
        };
        let pause = self.pause.map_or(SHORTEST, |pause| pause * 2).min(LONGEST);
        self.pause = Some(pause);
        let wait = error.wait().unwrap_or_default().max(pause);
        let now = Instant::now();
        self.until = Some(now + wait);
        self.refused = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_ten_seconds_and_end_with_a_success() {
        let throttled = Error::answered("DescribeDisks", 400, "Throttling");
        let mut calm = Calm::default();
        let pauses = [1, 2, 4, 8, 10, 10].map(Duration::from_secs);
        for pause in pauses {
            calm.after(Some(&throttled));
            assert_eq!(calm.until(), Some(Instant::now() + pause));
        }
        calm.after(None);
        assert_eq!(calm.until(), None);
        assert!(!calm.is_unbroken());
        tokio::time::advance(MEMORY).await;
        assert!(calm.is_unbroken());
    }

    #[tokio::test(start_paused = true)]
    async fn the_clouds_own_wait_is_kept_where_it_is_longer() {
        let wait = Duration::from_secs(40);
        let error = Error::answered("DescribeDisks", 400, "Throttling").with_wait(Some(wait));
        let mut calm = Calm::default();
        calm.after(Some(&error));
        assert_eq!(calm.until(), Some(Instant::now() + wait));
    }
}
