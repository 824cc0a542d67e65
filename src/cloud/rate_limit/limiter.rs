//! The rate limiter that every attempt passes: one queue per API, all under the limit of the account.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::state::{Position, State, Tickets};
use super::tally::Now;
use super::{ACCOUNT, CallOutcome, Class};
use crate::base::{Clock, Deadline};
use crate::cloud::Result;
use crate::cloud::error::{Error, Kind};

/// Limits the calls of one process to one region of one account.
#[derive(Debug)]
pub struct RateLimiter {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

/// A place in the queue, which dropping gives up.
#[derive(Debug)]
struct Place<'a> {
    limiter: &'a RateLimiter,
    action: &'static str,
    class: Class,
    position: Position,
}

/// Permission for one call. Dropping it without [`Permit::finish`] counts as a call without a
/// response.
#[derive(Debug)]
pub struct Permit<'a> {
    limiter: &'a RateLimiter,
    action: &'static str,
    tickets: Option<Tickets>,
}

impl RateLimiter {
    /// A limiter for an account of which nothing is known. The clock tells when the cloud's minutes
    /// end.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Mutex::new(State::default()),
        }
    }

    /// Makes the call when its turn comes, and learns from its result.
    ///
    /// # Errors
    /// That of the call, or of [`RateLimiter::acquire`].
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
        let permit = self.acquire(action, class, deadline).await?;
        let result = call().await;
        permit.finish(result.as_ref().err());
        result
    }

    /// Waits until a call of the action may be sent.
    ///
    /// # Errors
    /// [`Kind::Throttled`] at once if the limit certainly stays closed beyond the deadline, and at the
    /// deadline otherwise, with the expected wait; [`Kind::Deadline`] if nothing was ever throttled.
    pub async fn acquire(
        &self,
        action: &'static str,
        class: Class,
        deadline: Deadline,
    ) -> Result<Permit<'_>> {
        let wake = Arc::new(Notify::new());
        let place = Place {
            limiter: self,
            action,
            class,
            position: self.lock().join(action, class, deadline, &wake),
        };
        loop {
            let blocked = {
                let mut state = self.lock();
                let now = self.now();
                state.dispatch(now);
                if let tickets @ Some(_) = state.take(place.position) {
                    return Ok(Permit {
                        limiter: self,
                        action,
                        tickets,
                    });
                }
                state.blocked(action, class, place.position, now)
            };
            let left = deadline.remaining();
            let until = blocked.and_then(|blocked| blocked.until);
            let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
            let is_certain = blocked.is_some_and(|blocked| blocked.is_certain);
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

    /// Waits until a call of the action and class would be sent without queueing, or cannot be sent
    /// before the deadline. Nothing is reserved. Returns the time between two calls at the learned rate.
    pub async fn ready(&self, action: &'static str, class: Class, deadline: Deadline) -> Duration {
        if let Ok(mut permit) = self.acquire(action, class, deadline).await {
            permit.settle(CallOutcome::Unsent);
        }
        self.lock().spacing(action)
    }

    /// The error of a call that was not sent.
    fn not_sent(&self, action: &'static str, wait: Option<Duration>) -> Error {
        let Some((code, request)) = self.lock().refusal(action) else {
            return Error::new(Kind::Deadline, action)
                .with_message("not sent: the deadline passed while the call waited for its turn");
        };
        let expected = match wait {
            Some(wait) => format!("the next call is possible in {:.1} s", wait.as_secs_f64()),
            None => "other calls are first".to_owned(),
        };
        Error::new(Kind::Throttled, action)
            .with_message(format!(
                "not sent before the deadline: the last call was refused with {code} (RequestId \
                 {request}), and {expected}"
            ))
            .with_wait(wait)
    }

    fn now(&self) -> Now {
        Now::new(Instant::now(), self.clock.now())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit<'_> {
    /// Records how the call ended.
    pub fn finish(mut self, error: Option<&Error>) {
        let outcome = CallOutcome::of(error);
        if let (CallOutcome::Throttled { account, .. }, Some(error)) = (outcome, error) {
            let name = if account { ACCOUNT } else { self.action };
            let code = error.code().unwrap_or("HTTP 429").to_owned();
            let request = error.request_id().unwrap_or("unknown").to_owned();
            self.limiter.lock().set_refusal(name, code, request);
        }
        self.settle(outcome);
    }

    fn settle(&mut self, outcome: CallOutcome) {
        if let Some(tickets) = self.tickets.take() {
            let now = self.limiter.now();
            let mut state = self.limiter.lock();
            state.settle(self.action, tickets, outcome, now);
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.settle(CallOutcome::Unknown);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let now = self.limiter.now();
        let mut state = self.limiter.lock();
        state.leave(self.action, self.class, self.position, now);
    }
}

#[cfg(test)]
mod tests;
