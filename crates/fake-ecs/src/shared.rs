//! The state with its lock, clock and wakeup, shared by the front ends and the runner.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;

use super::clock::Clock;

use super::world::World;

#[derive(Debug)]
pub(crate) struct Shared {
    world: Mutex<World>,
    clock: Arc<dyn Clock>,
    wakeup: Notify,
}

impl Shared {
    pub(crate) fn new(world: World, clock: Arc<dyn Clock>) -> Self {
        Self {
            world: Mutex::new(world),
            clock,
            wakeup: Notify::new(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Locks the state. Methods keep it consistent, so a poisoned lock is usable.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the runner: an event may be due.
    pub(crate) fn wake(&self) {
        self.wakeup.notify_one();
    }

    pub(crate) async fn woken(&self) {
        self.wakeup.notified().await;
    }
}
