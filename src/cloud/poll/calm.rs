//! Patience after a throttling answer: for the rest of the window each further call is refused, and
//! counts against the account.

use std::time::Duration;

use tokio::time::Instant;

use crate::cloud::error::{Error, Kind};

/// The pauses when the cloud does not say how long to wait: doubled with each refusal.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(10);
/// A description that took longer was held up: the cloud has refused it before, and nobody was told, or
/// the cloud is slow and there is no use in asking it more often.
const HELD_UP: Duration = Duration::from_secs(1);
/// For how long that is remembered: as often as that, descriptions may be too many again.
const MEMORY: Duration = Duration::from_hours(1);

/// When the next description may be asked for.
#[derive(Debug, Default)]
pub(super) struct Calm {
    until: Option<Instant>,
    pause: Option<Duration>,
    broken: Option<Instant>,
}

impl Calm {
    /// Not before this instant, if any.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Whether lately no description was refused or held up.
    pub(super) fn is_unbroken(&self) -> bool {
        self.broken.is_none_or(|at| at.elapsed() >= MEMORY)
    }

    /// Takes in how a description ended that was begun then.
    pub(super) fn after(&mut self, begun: Instant, failure: Option<&Error>) {
        let now = Instant::now();
        if now - begun > HELD_UP {
            self.broken = Some(now);
        }
        let Some(error) = failure.filter(|error| error.kind() == Kind::Throttled) else {
            (self.until, self.pause) = (None, None);
            return;
        };
        let pause = self.pause.map_or(SHORTEST, |pause| pause * 2).min(LONGEST);
        self.pause = Some(pause);
        let wait = error.wait().unwrap_or_default().max(pause);
        self.until = Some(now + wait);
        self.broken = Some(now);
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
            calm.after(Instant::now(), Some(&throttled));
            assert_eq!(calm.until(), Some(Instant::now() + pause));
        }
        calm.after(Instant::now(), None);
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
        calm.after(Instant::now(), Some(&error));
        assert_eq!(calm.until(), Some(Instant::now() + wait));
    }
}
