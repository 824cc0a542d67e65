//! How long the operations that the cloud has accepted have been running. A call waits for an operation until it is
//! overdue. Later calls for it observe it once, and return: no caller is occupied by an operation that does not end.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use crate::base::lock;

/// How long an operation may run before it is overdue: several times as long as it usually takes.
pub const OVERDUE: Duration = Duration::from_secs(25);

/// How long an operation without calls for it is remembered: longer than the sidecars wait between two attempts.
const MEMORY: Duration = Duration::from_secs(15 * 60);

/// Maximum number of operations. Others begin again with each call.
const CAPACITY: usize = 10_000;

/// Since when operations have been running: the time at which each was accepted or first observed, and the time of the
/// last call for it. It outlives the calls that wait for them.
#[derive(Debug)]
pub struct RunningOperations<K>(Mutex<BTreeMap<K, (Instant, Instant)>>);

impl<K> Default for RunningOperations<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Ord + Clone> RunningOperations<K> {
    /// Since when the operation has been running: since now, unless it is known.
    pub fn start(&self, key: &K) -> Instant {
        if let Some(since) = self.since(key) {
            return since;
        }
        let now = Instant::now();
        let mut operations = lock(&self.0);
        operations.retain(|_, (_, used)| now - *used <= MEMORY);
        if operations.len() < CAPACITY {
            operations.insert(key.clone(), (now, now));
        }
        now
    }

    /// Since when the operation has been running, if it is known.
    pub fn since(&self, key: &K) -> Option<Instant> {
        let mut operations = lock(&self.0);
        let (since, used) = operations.get_mut(key)?;
        if used.elapsed() > MEMORY {
            return None;
        }
        *used = Instant::now();
        Some(*since)
    }

    /// Records that the operation is not running any more.
    pub fn end(&self, key: &K) {
        lock(&self.0).remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_operation_is_remembered_while_calls_wait_for_it() {
        let running = RunningOperations::default();
        let begun = running.start(&1);
        for _ in 0..10 {
            tokio::time::advance(MEMORY).await;
            assert_eq!(running.start(&1), begun);
        }
        tokio::time::advance(MEMORY + OVERDUE).await;
        assert_eq!(running.since(&1), None);
        assert_ne!(running.start(&1), begun);
        running.end(&1);
        assert_eq!(running.since(&1), None);
    }

    #[tokio::test(start_paused = true)]
    async fn abandoned_operations_do_not_accumulate() {
        let running = RunningOperations::default();
        for number in 0..CAPACITY + 10 {
            running.start(&number);
        }
        assert_eq!(lock(&running.0).len(), CAPACITY);
        tokio::time::advance(MEMORY + OVERDUE).await;
        running.start(&0);
        assert_eq!(lock(&running.0).len(), 1);
    }
}
