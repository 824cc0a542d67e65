//! The deadline of a call. It is passed down explicitly and never extended.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the deadline passed")]
pub struct Elapsed;

impl Deadline {
    /// A deadline that passes `duration` from now.
    #[must_use]
    pub fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// A deadline that does not pass: about 30 years from now.
    #[must_use]
    pub fn never() -> Self {
        Self::after(Duration::from_secs(60 * 60 * 24 * 365 * 30))
    }

    /// The remaining time; zero after the deadline.
    #[must_use]
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    #[must_use]
    pub fn has_passed(self) -> bool {
        self.remaining().is_zero()
    }

    /// The earlier of this deadline and `duration` from now.
    #[must_use]
    pub fn at_most(self, duration: Duration) -> Self {
        self.min(Self::after(duration))
    }

    /// Awaits the future until the deadline.
    ///
    /// # Errors
    /// [`Elapsed`] if the deadline passes first; the future is dropped.
    pub async fn bound<F: Future>(self, future: F) -> Result<F::Output, Elapsed> {
        tokio::time::timeout_at(self.0, future).await.map_err(|_| Elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_future_is_dropped_at_the_deadline() {
        let deadline = Deadline::after(Duration::from_secs(3));
        assert_eq!(deadline.bound(std::future::pending::<()>()).await, Err(Elapsed));
        assert!(deadline.has_passed());
    }

    #[tokio::test(start_paused = true)]
    async fn at_most_shortens_a_deadline_but_never_extends_it() {
        let deadline = Deadline::after(Duration::from_secs(3));
        assert_eq!(deadline.at_most(Duration::from_secs(9)), deadline);
        assert_eq!(
            deadline.at_most(Duration::from_secs(1)).remaining(),
            Duration::from_secs(1)
        );
    }
}
