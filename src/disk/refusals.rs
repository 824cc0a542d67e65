//! Pauses between orders that the cloud refuses, such as the expansion of a disk whose category is being changed.
//!
//! The rule: each refusal defers the next order with the same key by 0.5 s, 1 s, 2 s and so on up to 12 s, which is at
//! most ten orders a minute. Sidecars repeat a failed call within a second, so the pauses continue across calls. A call
//! whose order is due soon waits; any other call returns the last refusal without sending an order.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;

use ecs::{Error, Kind, Result};
use tokio::time::Instant;

use super::backoff::Backoff;
use crate::base::{Deadline, lock};

const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_secs(12);
/// How long [`Refusals::admit`] waits: longer than the first pauses, so that a short obstacle costs no retry of the
/// caller.
const SOON: Duration = Duration::from_secs(2);
/// How long a call should repeat an order that is refused because the resource is busy. A longer operation would occupy
/// a worker of the sidecar, whose retry continues with the same pauses.
pub(super) const MAX_REPEAT: Duration = Duration::from_secs(20);
/// How long the pauses continue to grow after an order was due.
const MEMORY: Duration = Duration::from_secs(60);

/// The last refusal of each order. The key contains what makes orders different, such as the disk and its new size.
#[derive(Debug)]
pub(super) struct Refusals<K>(Mutex<HashMap<K, Refusal>>);

#[derive(Debug)]
struct Refusal {
    error: Error,
    at: Instant,
    due: Instant,
    backoff: Backoff,
}

impl<K> Default for Refusals<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone + Send + Sync> Refusals<K> {
    /// Sends the order if it is admitted, and records its outcome.
    pub(super) async fn send<T: Send>(
        &self,
        deadline: Deadline,
        key: &K,
        order: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        self.admit(deadline, key).await?;
        let outcome = order.await;
        match &outcome {
            Ok(_) => self.record_success(key),
            Err(error) => self.record_refusal(key, error),
        }
        outcome
    }

    /// Waits until the order is due if that is within [`SOON`] and the deadline. Otherwise returns the last refusal.
    pub(super) async fn admit(&self, deadline: Deadline, key: &K) -> Result<()> {
        self.wait_due(deadline.at_most(SOON), key).await
    }

    /// Waits until the order is due. Returns the last refusal immediately if that is after the deadline.
    pub(super) async fn wait_due(&self, deadline: Deadline, key: &K) -> Result<()> {
        let due = match lock(&self.0).get(key) {
            Some(refusal) if refusal.pause() > deadline.remaining() => return Err(refusal.repeat()),
            Some(refusal) => refusal.due,
            None => return Ok(()),
        };
        tokio::time::sleep_until(due).await;
        Ok(())
    }

    /// Defers the next order if the error is a decision of the cloud.
    pub(super) fn record_refusal(&self, key: &K, error: &Error) {
        if !is_refusal(error) {
            return;
        }
        let mut refusals = lock(&self.0);
        refusals.retain(|_, refusal| refusal.due.elapsed() <= MEMORY);
        let now = Instant::now();
        let refusal = refusals.entry(key.clone()).or_insert_with(|| Refusal {
            error: error.clone(),
            at: now,
            due: now,
            backoff: Backoff::new(MIN_PAUSE, MAX_PAUSE),
        });
        refusal.error = error.clone();
        refusal.at = now;
        // The pauses of several orders in one call add up.
        refusal.due = refusal.due.max(now) + refusal.backoff.next_delay();
    }

    pub(super) fn record_success(&self, key: &K) {
        lock(&self.0).remove(key);
    }
}

impl Refusal {
    fn pause(&self) -> Duration {
        self.due.saturating_duration_since(Instant::now())
    }

    /// The error for a call without an order.
    fn repeat(&self) -> Error {
        let (ago, next) = (self.at.elapsed().as_secs(), self.pause().as_secs_f64().ceil());
        let error = self.error.clone();
        let message = error.message().map(|message| format!("{message} "));
        let message = message.unwrap_or_default();
        error.with_message(format!(
            "{message}[response of {ago} s ago; the next request is due in {next} s]"
        ))
    }
}

/// Whether the cloud decided against the order. The client retries throttled requests, and the next request after a
/// mismatch has another token.
fn is_refusal(error: &Error) -> bool {
    use Kind::{Ambiguous, NonceUsed, OperationPending, Throttled, TokenMismatch};
    let kinds = [Ambiguous, NonceUsed, OperationPending, Throttled, TokenMismatch];
    error.code().is_some() && !kinds.contains(&error.kind())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::base::error_chain;

    fn refused() -> Error {
        Error::from_response("ResizeDisk", 403, "IncorrectDiskStatus").with_request_id("R-1")
    }

    fn after(seconds: u64) -> Deadline {
        Deadline::after(Duration::from_secs(seconds))
    }

    /// Repeats a call as a sidecar does, for a minute.
    async fn calls_of_a_minute(pause: Duration, orders_per_call: u32) -> u32 {
        let (refusals, orders, start) = (Refusals::default(), AtomicU32::new(0), Instant::now());
        while start.elapsed() < Duration::from_secs(60) {
            for _ in 0..orders_per_call {
                let order = async {
                    orders.fetch_add(1, Ordering::Relaxed);
                    Err::<(), _>(refused())
                };
                refusals.send(after(60), &"d-1", order).await.unwrap_err();
            }
            tokio::time::sleep(pause).await;
        }
        orders.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_order_is_sent_at_most_ten_times_a_minute_however_often_it_is_called() {
        for millis in [1, 100, 1000, 3000] {
            for orders_per_call in [1, 2] {
                let pause = Duration::from_millis(millis);
                let orders = calls_of_a_minute(pause, orders_per_call).await;
                assert!((6..=10).contains(&orders), "{millis} ms: {orders}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_before_the_order_is_due_returns_the_last_refusal_and_its_age() {
        let refusals = Refusals::default();
        for _ in 0..4 {
            refusals.record_refusal(&"d-1", &refused());
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        let order = async { panic!("not due") };
        let outcome: Result<()> = refusals.send(after(60), &"d-1", order).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.condition(), refused().condition());
        let text = error_chain(&error);
        for part in ["IncorrectDiskStatus", "R-1", "response of 1 s ago", "due in "] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn another_order_is_not_deferred_and_a_success_ends_the_pauses() {
        let refusals = Refusals::default();
        for _ in 0..6 {
            refusals.record_refusal(&"d-1", &refused());
        }
        let started = Instant::now();
        assert!(refusals.send(after(60), &"d-2", async { Ok(()) }).await.is_ok());
        assert!(refusals.wait_due(after(60), &"d-1").await.is_ok());
        assert!(started.elapsed() > Duration::from_secs(20));
        assert!(refusals.send(after(60), &"d-1", async { Ok(()) }).await.is_ok());
        refusals.record_refusal(&"d-1", &refused());
        assert!(refusals.wait_due(after(1), &"d-1").await.is_ok());
    }

    #[test]
    fn only_decisions_of_the_cloud_are_refusals() {
        let error = |code| Error::from_response("CreateDisk", 403, code);
        for code in ["QuotaExceed.DiskCapacity", "Forbidden.RAM", "IncorrectDiskStatus"] {
            assert!(is_refusal(&error(code)), "{code}");
        }
        for code in ["Throttling", "InternalError", "IdempotentParameterMismatch"] {
            assert!(!is_refusal(&error(code)), "{code}");
        }
        assert!(!is_refusal(&Error::new(Kind::Deadline, "CreateDisk")));
        assert!(is_refusal(&refused().with_ambiguous_attempt(true)));
    }
}
