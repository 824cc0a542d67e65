//! Requests that an instance rejects because of its state (starting, stopping, or busy with an external operation), and
//! instances that make no progress.
//!
//! The rejected requests for an instance are retried one at a time, in FIFO order and with backoff. A request that has
//! not been rejected yet does not wait.
//!
//! An instance is stalled if it has completed no operation of a kind for [`OVERDUE`], although one was accepted or
//! requested. No call waits for a stalled instance: a call sends its request if it can do so immediately, and returns.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ecs::poll::OVERDUE;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tokio::time::Instant;

use super::target::AttachOperation;
use crate::base::{Deadline, Elapsed, lock};
use crate::disk::backoff::Backoff;
use crate::disk::observed::Observed;
use crate::model::{Failure, InstanceId};

/// How long after a rejection another request would be rejected too.
const RECENT: Duration = Duration::from_millis(500);

/// A request for a stalled instance is sent so long before it is due, because the call does not wait until then.
const SOON: Duration = Duration::from_secs(2);

/// How long the backoff is kept after the last rejection, so that the retry of a timed-out call continues with it.
const MEMORY: Duration = Duration::from_secs(60);

/// How long a stall without any call is remembered: longer than the sidecars wait between two attempts.
const STALL_MEMORY: Duration = Duration::from_secs(15 * 60);

#[derive(Debug, Default)]
pub(super) struct InstanceBackoffs(Mutex<HashMap<(InstanceId, AttachOperation), Arc<InstanceBackoff>>>);

#[derive(Debug, Default)]
pub(super) struct InstanceBackoff {
    permit: Arc<AsyncMutex<()>>,
    state: Observed<State>,
}

#[derive(Debug, Default)]
struct State {
    backoff: Backoff,
    last: Option<Instant>,
    /// When the next retry is due; `None` while the instance is ready.
    due: Option<Instant>,
    pending: Option<Pending>,
}

/// Since when the instance has completed nothing, and its last known activity.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) since: Instant,
    used: Instant,
    pub(super) failure: Failure,
    pub(super) reason: String,
}

/// Permit to retry a request, until dropped.
pub(super) type RetryPermit = OwnedMutexGuard<()>;

impl InstanceBackoffs {
    pub(super) fn get(&self, node: &InstanceId, operation: AttachOperation) -> Arc<InstanceBackoff> {
        let mut nodes = lock(&self.0);
        nodes.retain(|_, node| Arc::strong_count(node) > 1 || node.state.read().is_needed());
        Arc::clone(nodes.entry((node.clone(), operation)).or_default())
    }
}

impl InstanceBackoff {
    pub(super) fn record_rejection(&self, failure: Failure, reason: String) {
        self.state.update(|state| {
            if !state.is_backoff_current() {
                (state.backoff, state.due) = (Backoff::default(), None);
            }
            let now = Instant::now();
            state.last = Some(now);
            // First attempts of other requests do not defer the next retry.
            if state.due.is_none_or(|due| due <= now) {
                state.due = Some(now + state.backoff.next_delay());
            }
            state.set_pending(failure, reason);
        });
    }

    /// The instance has accepted a request, and processes it. Retries are allowed without a pause.
    pub(super) fn record_accepted(&self, reason: String) {
        self.state.update(|state| {
            let pending = state.pending.take();
            *state = State {
                pending,
                ..State::default()
            };
            state.set_pending(Failure::AttachQueueTimeout, reason);
        });
    }

    /// An operation that an earlier call has waited for is still running.
    pub(super) fn record_running(&self) {
        self.state.update_if(|state| {
            if let Some(pending) = &mut state.pending {
                pending.used = Instant::now();
            }
            false
        });
    }

    pub(super) fn record_completed(&self) {
        self.state.update(|state| *state = State::default());
    }

    /// Whether the instance would reject a request now that it has not rejected before.
    pub(super) fn is_not_ready(&self) -> bool {
        let state = self.state.read();
        let is_recent = state.last.is_some_and(|last| last.elapsed() < RECENT);
        is_recent || state.is_stalled() && state.due > Some(Instant::now() + SOON)
    }

    pub(super) async fn stalled(&self) -> Pending {
        loop {
            let changed = self.state.changed();
            let pending = self.state.read().current().cloned();
            match pending {
                Some(pending) if pending.since.elapsed() >= OVERDUE => return pending,
                Some(pending) => {
                    let _elapsed_or_changed = tokio::time::timeout_at(pending.since + OVERDUE, changed).await;
                }
                None => changed.await,
            }
        }
    }

    pub(super) async fn acquire(&self, deadline: Deadline) -> Result<RetryPermit, Elapsed> {
        let permit = deadline.bound(Arc::clone(&self.permit).lock_owned()).await?;
        loop {
            let changed = self.state.changed();
            let due = self.state.read().due;
            let Some(due) = due.filter(|due| *due > Instant::now()) else {
                return Ok(permit);
            };
            let pause = tokio::time::timeout_at(due, changed);
            let _elapsed_or_changed = deadline.bound(pause).await?;
        }
    }
}

impl State {
    fn is_backoff_current(&self) -> bool {
        self.due.is_some_and(|due| due.elapsed() <= MEMORY)
    }

    fn is_needed(&self) -> bool {
        self.is_backoff_current() || self.current().is_some()
    }

    fn current(&self) -> Option<&Pending> {
        let pending = self.pending.as_ref();
        pending.filter(|pending| pending.used.elapsed() <= STALL_MEMORY)
    }

    fn is_stalled(&self) -> bool {
        let pending = self.current();
        pending.is_some_and(|pending| pending.since.elapsed() >= OVERDUE)
    }

    fn set_pending(&mut self, failure: Failure, reason: String) {
        let now = Instant::now();
        let since = self.current().map_or(now, |pending| pending.since);
        self.pending = Some(Pending {
            since,
            used: now,
            failure,
            reason,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> InstanceId {
        "i-1".parse().unwrap()
    }

    fn reject(backoff: &InstanceBackoff) {
        backoff.record_rejection(Failure::NodeBusy, "busy".to_owned());
    }

    fn minute() -> Deadline {
        Deadline::after(Duration::from_secs(60))
    }

    #[tokio::test(start_paused = true)]
    async fn retries_of_all_requests_share_one_backoff() {
        let (backoffs, start) = (InstanceBackoffs::default(), Instant::now());
        let backoff = backoffs.get(&node(), AttachOperation::Attach);
        reject(&backoff);
        let request = async |n: u32| {
            let mut times = Vec::new();
            loop {
                let _permit = backoff.acquire(minute()).await;
                times.push((start.elapsed().as_secs(), n));
                if start.elapsed() > Duration::from_secs(30) {
                    backoff.record_completed();
                    return times;
                }
                reject(&backoff);
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
            assert!(times[..3].iter().any(|(_, request)| *request == n), "{times:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn accepted_request_ends_the_backoff() {
        let (backoffs, start) = (InstanceBackoffs::default(), Instant::now());
        let backoff = backoffs.get(&node(), AttachOperation::Attach);
        for _ in 0..6 {
            reject(&backoff);
            tokio::time::sleep(Duration::from_secs(9)).await;
        }
        reject(&backoff);
        assert!(backoff.is_not_ready());
        let other = backoffs.get(&node(), AttachOperation::Detach);
        assert!(!other.is_not_ready());
        let begun = start.elapsed();
        let accepted = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            backoff.record_completed();
        };
        let permit = backoff.acquire(minute());
        assert!(tokio::join!(permit, accepted).0.is_ok());
        assert_eq!(start.elapsed() - begun, Duration::from_secs(1));
        drop((backoff, other));
        let _another = backoffs.get(&node(), AttachOperation::Detach);
        assert_eq!(backoffs.0.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn timed_out_call_passes_the_permit_to_the_next() {
        let backoff = InstanceBackoffs::default().get(&node(), AttachOperation::Detach);
        reject(&backoff);
        let held = backoff.acquire(minute()).await;
        let soon = Deadline::after(Duration::from_secs(1));
        assert!(backoff.acquire(soon).await.is_err());
        drop(held);
        assert!(backoff.acquire(minute()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn an_instance_stalls_unless_it_completes_operations() {
        let (backoffs, start) = (InstanceBackoffs::default(), Instant::now());
        let backoff = backoffs.get(&node(), AttachOperation::Detach);
        let second = Duration::from_secs(1);
        let accept = |disk: &str| backoff.record_accepted(disk.to_owned());
        let progress = async {
            for _ in 0..30 {
                accept("d-1");
                tokio::time::sleep(4 * second).await;
                backoff.record_completed();
            }
            accept("d-2");
            tokio::time::sleep(10 * second).await;
            // Neither an acceptance nor a rejection is progress.
            accept("d-3");
            tokio::time::sleep(10 * second).await;
            reject(&backoff);
        };
        let ((), stalled) = tokio::join!(progress, backoff.stalled());
        assert_eq!(start.elapsed(), 120 * second + OVERDUE);
        assert_eq!(stalled.reason, "busy");
        tokio::time::advance(STALL_MEMORY - 10 * second).await;
        backoff.record_running();
        tokio::time::advance(STALL_MEMORY).await;
        assert!(backoffs.get(&node(), AttachOperation::Detach).state.read().is_stalled());
        tokio::time::advance(second).await;
        assert!(!backoff.state.read().is_needed());
    }
}
