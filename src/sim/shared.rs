//! The world with its lock, its clock and its bell: what both faces and the runner hold.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::Notify;

use crate::base::Clock;

use super::world::World;

/// The world, shared.
#[derive(Debug)]
pub(crate) struct Shared {
    world: Mutex<World>,
    clock: Arc<dyn Clock>,
    bell: Notify,
}

impl Shared {
    pub(crate) fn new(world: World, clock: Arc<dyn Clock>) -> Self {
        Self {
            world: Mutex::new(world),
            clock,
            bell: Notify::new(),
        }
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The world, for the moment. No rule is broken halfway, so a panic elsewhere does not spoil it.
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the runner that something may have become due.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}
