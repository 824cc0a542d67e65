//! One attachment and one detachment at a time for each instance, in the order of asking: the cloud
//! refuses a second one (`InvalidOperation.Conflict`), and each refusal costs a call and a wait.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::base::{Deadline, Elapsed};
use crate::model::InstanceId;

/// The queues of all instances.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pub(super) attach: Lane,
    pub(super) detach: Lane,
}

/// The queues of one direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    queues: Arc<Mutex<HashMap<InstanceId, Arc<Semaphore>>>>,
}

/// The turn of one call; dropping it lets the next one in.
#[derive(Debug)]
pub(super) struct Turn {
    lane: Lane,
    node: InstanceId,
    permit: Option<OwnedSemaphorePermit>,
}

impl Lane {
    /// Waits for the turn.
    pub(super) async fn turn(
        &self,
        node: &InstanceId,
        deadline: Deadline,
    ) -> Result<Turn, Elapsed> {
        let queue = Arc::clone(
            self.lock()
                .entry(node.clone())
                .or_insert_with(|| Arc::new(Semaphore::new(1))),
        );
        // Made before the wait, so that the queue is pruned also when the wait is given up.
        let mut turn = Turn {
            lane: self.clone(),
            node: node.clone(),
            permit: None,
        };
        let permit = deadline.bound(queue.acquire_owned()).await?;
        turn.permit = Some(permit.expect("the semaphore is never closed"));
        Ok(turn)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<InstanceId, Arc<Semaphore>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut queues = self.lane.lock();
        // The map's own reference is the last one when nobody holds or awaits a turn.
        if queues
            .get(&self.node)
            .is_some_and(|queue| Arc::strong_count(queue) == 1)
        {
            queues.remove(&self.node);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn node(id: &str) -> InstanceId {
        id.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_node_has_one_turn_and_another_node_its_own() {
        let lane = Lane::default();
        let soon = Deadline::after(Duration::from_secs(1));
        let held = lane.turn(&node("i-1"), soon).await;
        assert!(held.is_ok());
        assert!(lane.turn(&node("i-2"), soon).await.is_ok());
        assert!(lane.turn(&node("i-1"), soon).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_queue_that_nobody_uses_is_gone() {
        let lane = Lane::default();
        let soon = Deadline::after(Duration::from_secs(1));
        let held = lane.turn(&node("i-1"), soon).await.unwrap();
        assert!(lane.turn(&node("i-1"), soon).await.is_err());
        drop(held);
        assert!(lane.lock().is_empty());
    }
}
