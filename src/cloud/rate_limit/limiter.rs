//! The rate limiter that every attempt passes: one queue per API, all under the limit of the account.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::queue::{Position, Waiter};
use super::state::{State, Tickets};
use super::tally::Now;
use super::{CallOutcome, Class};
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
    wake: Arc<Notify>,
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
        let tickets = self.turn(action, class, deadline, false).await?;
        Ok(Permit {
            limiter: self,
            action,
            tickets,
        })
    }

    /// Waits until a call of the action and class would be sent without queueing, or until the
    /// deadline. Nothing is reserved.
    pub async fn ready(&self, action: &'static str, class: Class, deadline: Deadline) {
        // At the deadline the call itself reports the error.
        let _ = self.turn(action, class, deadline, true).await;
    }

    async fn turn(
        &self,
        action: &'static str,
        class: Class,
        deadline: Deadline,
        is_ready_only: bool,
    ) -> Result<Option<Tickets>> {
        let place = self.join(action, class, deadline, is_ready_only);
        loop {
            let blocked = {
                let mut state = self.lock();
                let now = self.now();
                state.dispatch(now);
                if let Some(tickets) = state.granted.remove(&place.position.1) {
                    return Ok(tickets);
                }
                state.blocked(action, class, place.position, now)
            };
            let until = blocked.and_then(|blocked| blocked.until);
            let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
            let is_late = blocked.is_some_and(|blocked| blocked.is_certain)
                && wait.is_some_and(|wait| wait >= deadline.remaining());
            if is_late || deadline.is_over() {
                return Err(self.not_sent(action, wait));
            }
            let pause = wait.map_or(deadline.remaining(), |wait| wait.min(deadline.remaining()));
            tokio::select! {
                // In a fixed order, so that a simulation runs the same each time.
                biased;
                () = place.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn join(
        &self,
        action: &'static str,
        class: Class,
        deadline: Deadline,
        is_ready_only: bool,
    ) -> Place<'_> {
        let wake = Arc::new(Notify::new());
        let mut state = self.lock();
        let position = (deadline, state.next_id);
        state.next_id += 1;
        let waiter = Waiter {
            wake: Arc::clone(&wake),
            is_ready_only,
        };
        state.api(action).queue.push(class, position, waiter);
        Place {
            limiter: self,
            action,
            class,
            position,
            wake,
        }
    }

    /// The error of a call that was not sent.
    fn not_sent(&self, action: &'static str, wait: Option<Duration>) -> Error {
        let mut state = self.lock();
        let by_account = state.account_refusal.clone();
        let by_account = by_account.filter(|_| state.account.is_limited());
        let refusal = by_account.or_else(|| state.api(action).last_refusal.clone());
        let Some((code, request)) = refusal else {
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
            let code = error.code().unwrap_or("HTTP 429").to_owned();
            let request = error.request_id().unwrap_or("unknown").to_owned();
            let mut state = self.limiter.lock();
            let last = if account {
                &mut state.account_refusal
            } else {
                &mut state.api(self.action).last_refusal
            };
            *last = Some((code, request));
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
        let queue = &mut state.api(self.action).queue;
        if queue.remove(self.class, self.position).is_some() {
            state.dispatch(now);
        } else if let Some(Some(tickets)) = state.granted.remove(&self.position.1) {
            state.settle(self.action, tickets, CallOutcome::Unsent, now);
        }
    }
}

#[cfg(test)]
mod tests;
