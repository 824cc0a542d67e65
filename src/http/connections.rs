//! The limit of parallel connections. If all are in use, a new one replaces the one that has waited longest for its
//! request, so that clients without a request do not block kubelet's probes.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::base::Tasks;

/// Of about 10 KiB each.
const MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Connections {
    slots: Arc<Semaphore>,
    waiting: Waiting,
    tasks: Tasks,
}

/// The connections that wait for their request, the oldest first.
#[derive(Debug, Clone, Default)]
struct Waiting(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    next: u64,
    tasks: BTreeMap<u64, AbortHandle>,
}

/// A connection that waits for its request.
#[derive(Debug, Clone)]
pub(super) struct Place {
    waiting: Waiting,
    number: u64,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            slots: Arc::new(Semaphore::new(MAX)),
            waiting: Waiting::default(),
            tasks: Tasks::default(),
        }
    }
}

impl Connections {
    /// Serves a connection on its own task. Waits if all others have their request.
    pub(super) async fn serve<F>(&self, serve: impl FnOnce(Place) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        if self.slots.available_permits() == 0 {
            self.waiting.end_oldest();
        }
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let place = self.waiting.place();
        let number = place.number;
        let connection = serve(place.clone());
        // Locked until the task is in the queue, from which it removes itself.
        let mut queue = self.waiting.lock();
        let task = self.tasks.spawn_abortable(async move {
            let _ended = scopeguard::guard((place, slot), |(place, _)| place.leave());
            connection.await;
        });
        queue.tasks.insert(number, task);
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self) -> Place {
        let mut queue = self.lock();
        let number = queue.next;
        queue.next += 1;
        Place {
            waiting: self.clone(),
            number,
        }
    }

    fn end_oldest(&self) {
        let oldest = self.lock().tasks.pop_first();
        if let Some((_, task)) = oldest {
            task.abort();
        }
    }
}

impl Place {
    /// The request has arrived: another connection no longer replaces this one.
    pub(super) fn leave(&self) {
        self.waiting.lock().tasks.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc::unbounded_channel;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_new_connection_replaces_the_oldest_without_a_request() {
        let connections = Connections::default();
        let (ended, mut results) = unbounded_channel();
        for number in 0..=MAX {
            let ended = ended.clone();
            let serve = |place: Place| async move {
                // The first one has its request.
                if number == 0 {
                    place.leave();
                }
                let guard = scopeguard::guard((place, ended), |(_, ended)| {
                    let _ = ended.send(number);
                });
                std::future::pending::<()>().await;
                drop(guard);
            };
            let served = timeout(Duration::from_secs(1), connections.serve(serve)).await;
            assert!(served.is_ok(), "connection {number} waits");
            tokio::task::yield_now().await;
        }
        assert_eq!(results.recv().await, Some(1));
        assert!(results.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn connections_with_a_request_are_not_replaced() {
        let connections = Connections::default();
        for _ in 0..MAX {
            let serve = |place: Place| async move {
                place.leave();
                tokio::time::sleep(Duration::from_secs(10)).await;
            };
            connections.serve(serve).await;
            tokio::task::yield_now().await;
        }
        let more = connections.serve(|_place| async {});
        assert!(timeout(Duration::from_secs(9), more).await.is_err());
        let more = connections.serve(|_place| async {});
        assert!(timeout(Duration::from_secs(2), more).await.is_ok());
    }
}
