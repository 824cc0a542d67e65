//! Instances that refuse orders because of their own state: starting, stopping, or busy with somebody else's operation.
//! Of the orders that an instance has refused, one is repeated at a time, after growing pauses, whichever disks they are
//! for. They take turns at this. An order that has not been refused yet does not wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard, watch};
use tokio::time::Instant;

use super::queue::Operation;
use crate::base::{Deadline, Elapsed};
use crate::disk::pauses::Pauses;
use crate::model::InstanceId;

/// How long after a refusal another order would be refused as well.
const RECENT: Duration = Duration::from_millis(500);

/// How long pauses are remembered after the last refusal: also a call that follows one whose deadline has passed
/// continues with long pauses.
const MEMORY: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<HashMap<(InstanceId, Operation), Arc<Refusing>>>);

#[derive(Debug, Default)]
struct Refusing {
    turn: Arc<AsyncMutex<()>>,
    state: watch::Sender<State>,
}

#[derive(Debug, Default)]
struct State {
    pauses: Pauses,
    last: Option<Instant>,
    /// When the next order may be repeated; none since the instance was ready.
    due: Option<Instant>,
}

/// The right to repeat an order, until it is dropped.
pub(super) type RetryTurn = OwnedMutexGuard<()>;

impl Refusals {
    pub(super) fn refused(&self, node: &InstanceId, operation: Operation) {
        self.of(node, operation).state.send_modify(|state| {
            let now = Instant::now();
            if state.is_forgotten(now) {
                *state = State::default();
            }
            state.last = Some(now);
            // First attempts of other orders do not defer the next repetition.
            if state.due.is_none_or(|due| due <= now) {
                state.due = Some(now + state.pauses.next());
            }
        });
    }

    /// The instance has accepted an order, or ended an operation: orders that it has refused are worth another attempt at
    /// once.
    pub(super) fn ready(&self, node: &InstanceId, operation: Operation) {
        if let Some(refusing) = self.lock().remove(&(node.clone(), operation)) {
            refusing.state.send_replace(State::default());
        }
    }

    /// Whether the instance has just refused an order.
    pub(super) fn is_recent(&self, node: &InstanceId, operation: Operation) -> bool {
        let known = self.lock().get(&(node.clone(), operation)).cloned();
        let last = known.and_then(|refusing| refusing.state.borrow().last);
        last.is_some_and(|last| last.elapsed() < RECENT)
    }

    /// Waits for the turn to repeat a refused order, and until its pause is over.
    pub(super) async fn turn(
        &self,
        node: &InstanceId,
        operation: Operation,
        deadline: Deadline,
    ) -> Result<RetryTurn, Elapsed> {
        let refusing = self.of(node, operation);
        let turn = deadline.bound(Arc::clone(&refusing.turn).lock_owned());
        let turn = turn.await?;
        let mut state = refusing.state.subscribe();
        loop {
            let due = state.borrow_and_update().due;
            let Some(due) = due.filter(|due| *due > Instant::now()) else {
                return Ok(turn);
            };
            let pause = tokio::time::timeout_at(due, state.changed());
            let _over_or_changed = deadline.bound(pause).await?;
        }
    }

    fn of(&self, node: &InstanceId, operation: Operation) -> Arc<Refusing> {
        let mut nodes = self.lock();
        let now = Instant::now();
        nodes.retain(|_, one| Arc::strong_count(one) > 1 || !one.state.borrow().is_forgotten(now));
        Arc::clone(nodes.entry((node.clone(), operation)).or_default())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(InstanceId, Operation), Arc<Refusing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn is_forgotten(&self, now: Instant) -> bool {
        self.due.is_none_or(|due| now > due + MEMORY)
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
        let refusals = Refusals::default();
        let (node, start) = (node(), Instant::now());
        refusals.refused(&node, Operation::Attach);
        let order = async |n: u32| {
            let mut times = Vec::new();
            loop {
                let _turn = refusals.turn(&node, Operation::Attach, minute()).await;
                times.push((start.elapsed().as_secs(), n));
                if start.elapsed() > Duration::from_secs(30) {
                    refusals.ready(&node, Operation::Attach);
                    return times;
                }
                refusals.refused(&node, Operation::Attach);
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
        let refusals = Refusals::default();
        let (node, start) = (node(), Instant::now());
        for _ in 0..6 {
            refusals.refused(&node, Operation::Attach);
            tokio::time::sleep(Duration::from_secs(9)).await;
        }
        refusals.refused(&node, Operation::Attach);
        assert!(refusals.is_recent(&node, Operation::Attach));
        assert!(!refusals.is_recent(&node, Operation::Detach));
        let begun = start.elapsed();
        let accepted = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            refusals.ready(&node, Operation::Attach);
        };
        let turn = refusals.turn(&node, Operation::Attach, minute());
        assert!(tokio::join!(turn, accepted).0.is_ok());
        assert_eq!(start.elapsed() - begun, Duration::from_secs(1));
        assert!(refusals.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_leaves_gives_its_turn_to_the_next() {
        let refusals = Refusals::default();
        let node = node();
        refusals.refused(&node, Operation::Detach);
        let held = refusals.turn(&node, Operation::Detach, minute()).await;
        let soon = Deadline::after(Duration::from_secs(1));
        assert!(refusals.turn(&node, Operation::Detach, soon).await.is_err());
        drop(held);
        assert!(
            refusals
                .turn(&node, Operation::Detach, minute())
                .await
                .is_ok()
        );
    }
}
