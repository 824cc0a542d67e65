//! The instant by which a call must have answered. Passed down explicitly; never stretched.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

/// The deadline of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

/// The deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the deadline passed")]
pub struct Elapsed;

impl Deadline {
    /// So long from now.
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// The time that is left; zero once it has passed.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it has passed.
    #[must_use]
    pub fn is_over(self) -> bool {
        self.remaining().is_zero()
    }

    /// This deadline, but not later than so long from now.
    #[must_use]
    pub fn at_most(self, duration: Duration) -> Self {
        self.min(Self::after(duration))
    }

    /// Awaits the future, but not beyond the deadline.
    ///
    /// # Errors
    /// [`Elapsed`] when the deadline came first; the future is dropped then.
    pub async fn bound<F: Future>(self, future: F) -> Result<F::Output, Elapsed> {
        tokio::time::timeout_at(self.0, future)
            .await
            .map_err(|_| Elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_future_is_cut_off_at_the_deadline() {
        let deadline = Deadline::after(Duration::from_secs(3));
        assert_eq!(
            deadline.bound(std::future::pending::<()>()).await,
            Err(Elapsed)
        );
        assert!(deadline.is_over());
    }

    #[tokio::test(start_paused = true)]
    async fn a_nearer_bound_wins_and_a_farther_one_does_not_stretch() {
        let deadline = Deadline::after(Duration::from_secs(3));
        assert_eq!(deadline.at_most(Duration::from_secs(9)), deadline);
        assert_eq!(
            deadline.at_most(Duration::from_secs(1)).remaining(),
            Duration::from_secs(1)
        );
    }
}
