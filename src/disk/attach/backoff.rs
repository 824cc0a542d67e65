//! Retries of requests that an instance rejects because of its state: starting, stopping, or busy with an external
//! operation. The rejected requests for an instance are retried one at a time, in FIFO order and with backoff. A request
//! that has not been rejected yet does not wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};
use tokio::time::Instant;

use super::queue::Operation;
use crate::base::{Deadline, Elapsed};
use crate::disk::backoff::Backoff;
use crate::model::InstanceId;

/// How long after a rejection another request would be rejected too.
const RECENT: Duration = Duration::from_millis(500);

/// How long the backoff is kept after the last rejection, so that the retry of a timed-out call continues with it.
const MEMORY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct InstanceBackoffs(Mutex<HashMap<(InstanceId, Operation), Arc<InstanceBackoff>>>);

#[derive(Debug, Default)]
pub(super) struct InstanceBackoff {
    permit: Arc<AsyncMutex<()>>,
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    backoff: Backoff,
    last: Option<Instant>,
    /// When the next retry is due; `None` while the instance is ready.
    due: Option<Instant>,
}

/// Permit to retry a request, until dropped.
pub(super) type RetryPermit = OwnedMutexGuard<()>;

impl InstanceBackoffs {
    pub(super) fn get(&self, node: &InstanceId, operation: Operation) -> Arc<InstanceBackoff> {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.retain(|_, node| Arc::strong_count(node) > 1 || !node.state.borrow().is_expired());
        Arc::clone(nodes.entry((node.clone(), operation)).or_default())
    }
}

impl InstanceBackoff {
    pub(super) fn record_rejection(&self) {
        self.state.send_modify(|state| {
            if state.is_expired() {
                *state = State::default();
            }
            let now = Instant::now();
            state.last = Some(now);
            // First attempts of other requests do not defer the next retry.
            if state.due.is_none_or(|due| due <= now) {
                state.due = Some(now + state.backoff.next_delay());
            }
        });
    }

    /// Allows retries without a pause: the instance has accepted a request or completed an operation.
    pub(super) fn reset(&self) {
        self.state.send_replace(State::default());
    }

    pub(super) fn is_recently_rejected(&self) -> bool {
        let last = self.state.borrow().last;
        last.is_some_and(|last| last.elapsed() < RECENT)
    }

    /// Waits until a rejected request may be retried.
    pub(super) async fn acquire(&self, deadline: Deadline) -> Result<RetryPermit, Elapsed> {
        let permit = deadline
            .bound(Arc::clone(&self.permit).lock_owned())
            .await?;
        let mut state = self.state.subscribe();
        loop {
            let due = state.borrow_and_update().due;
            let Some(due) = due.filter(|due| *due > Instant::now()) else {
                return Ok(permit);
            };
            let pause = tokio::time::timeout_at(due, state.changed());
            let _elapsed_or_changed = deadline.bound(pause).await?;
        }
    }
}

impl State {
    fn is_expired(&self) -> bool {
        self.due.is_none_or(|due| due.elapsed() > MEMORY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> InstanceId {
        "i-1".parse().unwrap()
    }

    fn minute() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    #[tokio::test(start_paused = true)]
    async fn retries_of_all_requests_share_one_backoff() {
        let (backoffs, start) = (InstanceBackoffs::default(), Instant::now());
        let backoff = backoffs.get(&node(), Operation::Attach);
        backoff.record_rejection();
        let request = async |n: u32| {
            let mut times = Vec::new();
            loop {
                let _permit = backoff.acquire(minute()).await;
                times.push((start.elapsed().as_secs(), n));
                if start.elapsed() > Duration::from_secs(30) {
                    backoff.reset();
                    return times;
                }
                backoff.record_rejection();
            }
        };
        let (first, second, third) = tokio::join!(request(0), request(1), request(2));
        let mut times = [first, second, third].concat();
        times.sort_unstable();
        let seconds: Vec<_> = times.iter().map(|(second, _)| *second).collect();
        // The last three are accepted one right after the other.
        assert_eq!(seconds.len(), 9, "{times:?}");
        assert_eq!(seconds[6], seconds[8], "{times:?}");
        for n in 0..3 {
            assert!(
                times[..3].iter().any(|(_, request)| *request == n),
                "{times:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn accepted_request_ends_the_backoff() {
        let (backoffs, start) = (InstanceBackoffs::default(), Instant::now());
        let backoff = backoffs.get(&node(), Operation::Attach);
        for _ in 0..6 {
            backoff.record_rejection();
            tokio::time::sleep(Duration::from_secs(9)).await;
        }
        backoff.record_rejection();
        assert!(backoff.is_recently_rejected());
        let other = backoffs.get(&node(), Operation::Detach);
        assert!(!other.is_recently_rejected());
        let begun = start.elapsed();
        let accepted = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            backoff.reset();
        };
        let permit = backoff.acquire(minute());
        assert!(tokio::join!(permit, accepted).0.is_ok());
        assert_eq!(start.elapsed() - begun, Duration::from_secs(1));
        drop((backoff, other));
        let _another = backoffs.get(&node(), Operation::Detach);
        assert_eq!(backoffs.0.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn timed_out_call_passes_the_permit_to_the_next() {
        let backoff = InstanceBackoffs::default().get(&node(), Operation::Detach);
        backoff.record_rejection();
        let held = backoff.acquire(minute()).await;
        let soon = Deadline::after(Duration::from_secs(1));
        assert!(backoff.acquire(soon).await.is_err());
        drop(held);
        assert!(backoff.acquire(minute()).await.is_ok());
    }
}
