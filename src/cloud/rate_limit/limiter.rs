//! The rate limiter that every attempt passes: one queue per API, all under the limit of the account.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::queue::{Place, Queues};
use super::time::Now;
use super::{CallOutcome, Class};
use crate::base::{Clock, Deadline};
use crate::cloud::Result;
use crate::cloud::error::{Error, Kind};

/// Limits the calls of one process to one region of one account.
#[derive(Debug)]
pub struct RateLimiter {
    clock: Arc<dyn Clock>,
    queues: Mutex<Queues>,
}

/// A call that waits for its turn, or has it. Dropping it before it is sent gives up the turn; dropping it after that
/// counts as a call without a response.
#[derive(Debug)]
struct Permit<'a> {
    limiter: &'a RateLimiter,
    place: Place,
    sent: Option<Now>,
}

impl RateLimiter {
    /// A limiter for an account of which nothing is known. The clock tells when the cloud's minutes
    /// end.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            queues: Mutex::new(Queues::new()),
        }
    }

    /// Makes the call when its turn comes, and learns from its result.
    ///
    /// # Errors
    /// That of the call; [`Kind::Throttled`] at once if the limit certainly stays closed beyond the deadline, and at the
    /// deadline otherwise, with the expected wait; [`Kind::Deadline`] if nothing was ever throttled.
    pub async fn run<T, F>(
        &self,
        action: &'static str,
        class: Class,
        deadline: Deadline,
        call: impl FnOnce() -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut permit = self.acquire(action, class, deadline).await?;
        let result = call().await;
        permit.end(CallOutcome::of(result.as_ref().err()));
        result
    }

    async fn acquire(
        &self,
        action: &'static str,
        class: Class,
        deadline: Deadline,
    ) -> Result<Permit<'_>> {
        let wake = Arc::new(Notify::new());
        let place = self.lock().join(action, class, deadline, &wake);
        let mut permit = Permit {
            limiter: self,
            place,
            sent: None,
        };
        loop {
            let polled = self.lock().poll(place, self.now());
            permit.sent = polled.ok();
            let Err(turn) = polled else {
                return Ok(permit);
            };
            let left = deadline.remaining();
            let wait = turn.map(|turn| turn.at.saturating_duration_since(Instant::now()));
            let is_certain = turn.is_some_and(|turn| turn.is_certain);
            if left.is_zero() || is_certain && wait >= Some(left) {
                return Err(self.not_sent(action, wait));
            }
            tokio::select! {
                // In a fixed order, so that a simulation runs the same each time.
                biased;
                () = wake.notified() => {}
                () = tokio::time::sleep(wait.map_or(left, |wait| wait.min(left))) => {}
            }
        }
    }

    /// Waits until a call of the action and class would be sent without queueing. Nothing is reserved. Returns the time
    /// between two calls at the learned rate; none if the call cannot be sent before the deadline.
    pub async fn ready(
        &self,
        action: &'static str,
        class: Class,
        deadline: Deadline,
    ) -> Option<Duration> {
        let mut permit = self.acquire(action, class, deadline).await.ok()?;
        permit.end(CallOutcome::Unsent);
        Some(self.lock().spacing(action))
    }

    /// The error of a call that was not sent.
    fn not_sent(&self, action: &'static str, wait: Option<Duration>) -> Error {
        let Some(refusal) = self.lock().refusal(action) else {
            return Error::new(Kind::Deadline, action)
                .with_message("not sent: the deadline passed while the call waited for its turn");
        };
        let expected = match wait {
            Some(wait) => format!("the next call is possible in {:.1} s", wait.as_secs_f64()),
            None => "other calls are first".to_owned(),
        };
        let what = "not sent before the deadline: the last call was refused";
        Error::new(Kind::Throttled, action)
            .with_message(format!("{what} ({refusal}), and {expected}"))
            .with_wait(wait)
    }

    fn now(&self) -> Now {
        Now::new(Instant::now(), self.clock.now())
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    fn end(&mut self, outcome: CallOutcome) {
        let now = self.limiter.now();
        let sent = self.sent.take();
        self.limiter.lock().end(self.place, sent, outcome, now);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.end(CallOutcome::Unknown);
    }
}

#[cfg(test)]
mod tests;
