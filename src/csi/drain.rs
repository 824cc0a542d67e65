//! Shutting down without dropping a call: new ones are refused, running ones finish.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// The calls that run, and whether new ones are taken. Clones share it.
#[derive(Debug, Clone)]
pub struct Drain {
    draining: Arc<AtomicBool>,
    running: watch::Sender<usize>,
}

/// One running call.
#[derive(Debug)]
pub struct Running {
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
    /// Admits a call; none while draining.
    #[must_use]
    pub fn admit(&self) -> Option<Running> {
        // Counted first: a call that comes between the look and the count would not be waited for.
        self.running.send_modify(|running| *running += 1);
        let admitted = Running {
            running: self.running.clone(),
        };
        (!self.draining.load(Ordering::SeqCst)).then_some(admitted)
    }

    /// Refuses new calls from now on and returns when none is running.
    pub async fn finish(&self) {
        self.draining.store(true, Ordering::SeqCst);
        // The sender is held here, so that the channel cannot be closed.
        let _ = self
            .running
            .subscribe()
            .wait_for(|running| *running == 0)
            .await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.running.send_modify(|running| *running -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_running_call_is_waited_for_and_a_new_one_is_refused() {
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
