//! Retries of requests that an instance rejects because of its state: starting, stopping, or busy with an external
//! operation. Of all rejected requests for an instance, one is retried at a time, in turn and with backoff. A request that
//! has not been rejected yet does not wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};
use tokio::time::Instant;

use super::queue::Operation;
use crate::base::{Deadline, Elapsed};
use crate::disk::pauses::Pauses;
use crate::model::InstanceId;

/// How long after a rejection another request would be rejected too.
const RECENT: Duration = Duration::from_millis(500);

/// How long the backoff is kept after the last rejection, so that the retry of a timed-out call continues with it.
const MEMORY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct RejectedRequests(Mutex<HashMap<(InstanceId, Operation), Arc<InstanceBackoff>>>);

#[derive(Debug, Default)]
pub(super) struct InstanceBackoff {
    turn: Arc<AsyncMutex<()>>,
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    pauses: Pauses,
    last: Option<Instant>,
    /// When the next retry is due; none while the instance is ready.
    due: Option<Instant>,
}

/// Permit to retry a request, until dropped.
pub(super) type RetryPermit = OwnedMutexGuard<()>;

impl RejectedRequests {
    pub(super) fn of(&self, node: &InstanceId, operation: Operation) -> Arc<InstanceBackoff> {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.retain(|_, one| Arc::strong_count(one) > 1 || !one.state.borrow().is_forgotten());
        Arc::clone(nodes.entry((node.clone(), operation)).or_default())
    }
}

impl InstanceBackoff {
    pub(super) fn refused(&self) {
        self.state.send_modify(|state| {
            if state.is_forgotten() {
                *state = State::default();
            }
            let now = Instant::now();
            state.last = Some(now);
            // First attempts of other orders do not defer the next repetition.
            if state.due.is_none_or(|due| due <= now) {
                state.due = Some(now + state.pauses.next());
            }
        });
    }

    /// The instance has accepted an order, or ended an operation: orders that it has refused are
    /// worth another attempt at once.
    pub(super) fn ready(&self) {
        self.state.send_replace(State::default());
    }

    /// Whether the instance has just refused an order.
    pub(super) fn is_recent(&self) -> bool {
        let last = self.state.borrow().last;
        last.is_some_and(|last| last.elapsed() < RECENT)
    }

    /// Waits for the turn to repeat a refused order, and until its pause is over.
    pub(super) async fn turn(&self, deadline: Deadline) -> Result<RetryPermit, Elapsed> {
        let turn = deadline.bound(Arc::clone(&self.turn).lock_owned()).await?;
        let mut state = self.state.subscribe();
        loop {
            let due = state.borrow_and_update().due;
            let Some(due) = due.filter(|due| *due > Instant::now()) else {
                return Ok(turn);
            };
            let pause = tokio::time::timeout_at(due, state.changed());
            let _over_or_changed = deadline.bound(pause).await?;
        }
    }
}

impl State {
    fn is_forgotten(&self) -> bool {
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
    async fn repetitions_of_all_orders_follow_one_schedule() {
        let (refusals, start) = (RejectedRequests::default(), Instant::now());
        let refusing = refusals.of(&node(), Operation::Attach);
        refusing.refused();
        let order = async |n: u32| {
            let mut times = Vec::new();
            loop {
                let _turn = refusing.turn(minute()).await;
                times.push((start.elapsed().as_secs(), n));
                if start.elapsed() > Duration::from_secs(30) {
                    refusing.ready();
                    return times;
                }
                refusing.refused();
            }
        };
        let (first, second, third) = tokio::join!(order(0), order(1), order(2));
        let mut times = [first, second, third].concat();
        times.sort_unstable();
        let seconds: Vec<_> = times.iter().map(|(second, _)| *second).collect();
        // The last three are accepted one right after the other.
        assert_eq!(seconds.len(), 9, "{times:?}");
        assert_eq!(seconds[6], seconds[8], "{times:?}");
        for n in 0..3 {
            assert!(times[..3].iter().any(|(_, order)| *order == n), "{times:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_accepted_order_ends_the_pause_of_a_refused_one() {
        let (refusals, start) = (RejectedRequests::default(), Instant::now());
        let refusing = refusals.of(&node(), Operation::Attach);
        for _ in 0..6 {
            refusing.refused();
            tokio::time::sleep(Duration::from_secs(9)).await;
        }
        refusing.refused();
        assert!(refusing.is_recent());
        let other = refusals.of(&node(), Operation::Detach);
        assert!(!other.is_recent());
        let begun = start.elapsed();
        let accepted = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            refusing.ready();
        };
        let turn = refusing.turn(minute());
        assert!(tokio::join!(turn, accepted).0.is_ok());
        assert_eq!(start.elapsed() - begun, Duration::from_secs(1));
        drop((refusing, other));
        let _another = refusals.of(&node(), Operation::Detach);
        assert_eq!(refusals.0.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_leaves_gives_its_turn_to_the_next() {
        let refusing = RejectedRequests::default().of(&node(), Operation::Detach);
        refusing.refused();
        let held = refusing.turn(minute()).await;
        let soon = Deadline::after(Duration::from_secs(1));
        assert!(refusing.turn(soon).await.is_err());
        drop(held);
        assert!(refusing.turn(minute()).await.is_ok());
    }
}
