//! A value whose changes wake its waiters in the order in which they began to wait. Those of tokio's `watch` wake in a
//! random order, and a simulation would not run the same each time.

use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::base::lock;

#[derive(Debug, Default)]
pub(super) struct Observed<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T> Observed<T> {
    pub(super) fn read(&self) -> MutexGuard<'_, T> {
        lock(&self.value)
    }

    pub(super) fn update(&self, change: impl FnOnce(&mut T)) {
        self.update_if(|value| {
            change(value);
            true
        });
    }

    /// Wakes the waiters if `change` returns true. Returns the same.
    pub(super) fn update_if(&self, change: impl FnOnce(&mut T) -> bool) -> bool {
        let is_changed = change(&mut self.read());
        if is_changed {
            self.changed.notify_waiters();
        }
        is_changed
    }

    /// Waits for the next change after this call, even if it is awaited later.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    pub(super) async fn wait_for(&self, is_reached: impl Fn(&T) -> bool + Send + Sync) {
        loop {
            let changed = self.changed();
            if is_reached(&self.read()) {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn waiters_wake_in_the_order_in_which_they_began_to_wait() {
        let (flag, order) = (Arc::new(Observed::<bool>::default()), Arc::<Mutex<Vec<u8>>>::default());
        let mut waiters = JoinSet::new();
        for number in 0..20 {
            let (flag, order) = (Arc::clone(&flag), Arc::clone(&order));
            waiters.spawn(async move {
                flag.wait_for(|is_set| *is_set).await;
                lock(&order).push(number);
            });
        }
        tokio::task::yield_now().await;
        flag.update_if(|_| false);
        tokio::task::yield_now().await;
        assert!(lock(&order).is_empty());
        flag.update(|is_set| *is_set = true);
        while waiters.join_next().await.is_some() {}
        assert_eq!(*lock(&order), Vec::from_iter(0..20));
    }
}
