//! The rate limiter that every attempt passes: one queue per API, all under the limit of the account.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::queue::{QueuedCall, Queues};
use super::{CallOutcome, ConfiguredLimits, LimitReport, Priority};
use crate::Result;
use crate::base::{Clock, Deadline, lock, span};
use crate::error::{Error, Kind};

/// Limits the calls of one process to one region of one account.
#[derive(Debug)]
pub struct RateLimiter(Mutex<Queues>);

/// A queued or granted call. Dropping it before the call is sent returns the grant; dropping it afterwards counts as a
/// call without a response.
#[derive(Debug)]
struct Permit<'a> {
    limiter: &'a RateLimiter,
    queued: QueuedCall,
    sent: Option<Instant>,
}

impl RateLimiter {
    /// A limiter for an account with unknown quotas. The clock determines when quotas per minute open.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Mutex::new(Queues::new(clock)))
    }

    /// Makes the call when the limits permit it, and adapts them to its result.
    ///
    /// # Errors
    /// That of the call; [`Kind::Throttled`] with the expected wait, immediately if the limit certainly stays closed
    /// beyond the deadline, otherwise at the deadline; [`Kind::Deadline`] if no call was ever throttled.
    pub async fn run<T, F>(
        &self,
        action: &'static str,
        priority: Priority,
        deadline: Deadline,
        call: impl FnOnce() -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let acquired = self.acquire(action, priority, deadline);
        let mut permit = span::in_phase(acquired, span::RATE_LIMIT).await?;
        let result = call().await;
        permit.end(CallOutcome::from_error(result.as_ref().err()));
        result
    }

    /// Replaces the configured limits, also for calls that already wait.
    pub fn configure(&self, limits: ConfiguredLimits) {
        lock(&self.0).configure(limits);
    }

    /// The state of the limits of the account and of each API that was called.
    pub fn report(&self) -> Vec<LimitReport> {
        lock(&self.0).report(Instant::now())
    }

    async fn acquire(&self, action: &'static str, priority: Priority, deadline: Deadline) -> Result<Permit<'_>> {
        let wake = Arc::new(Notify::new());
        let queued = lock(&self.0).join(action, priority, deadline, &wake);
        let mut permit = Permit {
            limiter: self,
            queued,
            sent: None,
        };
        loop {
            let polled = lock(&self.0).poll(queued, Instant::now());
            permit.sent = polled.ok();
            let Err(earliest) = polled else {
                return Ok(permit);
            };
            let left = deadline.remaining();
            let wait = earliest.map(|earliest| earliest.at.saturating_duration_since(Instant::now()));
            let is_certain = earliest.is_some_and(|earliest| earliest.is_certain);
            if left.is_zero() || is_certain && wait >= Some(left) {
                return Err(self.not_sent(action, priority, wait));
            }
            tokio::select! {
                // In a fixed order, so that a simulation runs the same each time.
                biased;
                () = wake.notified() => {}
                () = tokio::time::sleep(wait.map_or(left, |wait| wait.min(left))) => {}
            }
        }
    }

    /// Waits until a call of the action and priority would be sent without queueing. Nothing is reserved. Returns the
    /// time between two calls at the learned rate; none if the call cannot be sent before the deadline.
    pub async fn ready(&self, action: &'static str, priority: Priority, deadline: Deadline) -> Option<Duration> {
        let mut permit = self.acquire(action, priority, deadline).await.ok()?;
        permit.end(CallOutcome::Unsent);
        Some(lock(&self.0).spacing(action))
    }

    /// The error of a call that was not sent.
    fn not_sent(&self, action: &'static str, priority: Priority, wait: Option<Duration>) -> Error {
        let queued = "not sent: the deadline passed while the call was queued";
        let delaying = lock(&self.0).delaying(action, priority);
        if let Some((name, rate)) = delaying {
            return Error::new(Kind::Deadline, action).with_message(format!(
                "{queued}; the configured rate limit is {name}={rate} calls per second"
            ));
        }
        let Some(error) = lock(&self.0).last_error(action) else {
            return Error::new(Kind::Deadline, action).with_message(queued);
        };
        let expected = match wait {
            Some(wait) => format!("the next call is possible in {:.1} s", wait.as_secs_f64()),
            None => "other calls precede it".to_owned(),
        };
        let reason = "not sent before the deadline: the last call was throttled";
        Error::new(Kind::Throttled, action)
            .with_message(format!("{reason} ({error}), and {expected}"))
            .with_retry_after(wait)
    }
}

impl Permit<'_> {
    fn end(&mut self, outcome: CallOutcome) {
        let sent = self.sent.take();
        lock(&self.limiter.0).end(self.queued, sent, outcome);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.end(CallOutcome::Unknown);
    }
}

#[cfg(test)]
mod tests;
