//! Graceful shutdown: new calls are rejected, running calls finish.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// Counts running calls, and rejects new ones once draining. Clones share the state.
#[derive(Debug, Clone)]
pub struct Drain {
    draining: Arc<AtomicBool>,
    running: watch::Sender<usize>,
}

/// A running call, until it is dropped.
#[derive(Debug)]
pub struct RunningCall {
    running: watch::Sender<usize>,
}

impl Default for Drain {
    fn default() -> Self {
        Self {
            draining: Arc::default(),
            running: watch::Sender::new(0),
        }
    }
}

impl Drain {
    /// Admits a call; `None` while draining.
    #[must_use]
    pub fn admit(&self) -> Option<RunningCall> {
        // Counted before the check, so that `finish` waits for every admitted call.
        self.running.send_modify(|running| *running += 1);
        let admitted = RunningCall {
            running: self.running.clone(),
        };
        (!self.draining.load(Ordering::SeqCst)).then_some(admitted)
    }

    /// Rejects new calls and returns when no call is running.
    pub async fn finish(&self) {
        self.draining.store(true, Ordering::SeqCst);
        // `self` owns the sender, so the channel cannot be closed.
        let _ = self.running.subscribe().wait_for(|running| *running == 0).await;
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.running.send_modify(|running| *running -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_running_call_finishes_and_a_new_one_is_rejected() {
        let drain = Drain::default();
        let call = drain.admit().unwrap();
        let finish = drain.finish();
        tokio::pin!(finish);
        assert!(
            tokio::time::timeout(std::time::Duration::from_millis(20), &mut finish)
                .await
                .is_err()
        );
        assert!(drain.admit().is_none());
        drop(call);
        finish.await;
    }
}
