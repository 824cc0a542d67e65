//! Background task of a fake cloud with devices: processes due events without calls, and performs
//! the work on devices.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::advance::{advance, complete};
use super::distribution::until;
use super::effect::{Effect, Work};
use super::error_text::error_text;
use super::loopdev::{LoopDevices, Progress};
use super::shared::Shared;

/// Delay before a busy device is retried.
const RETRY: Duration = Duration::from_millis(200);
/// Longest sleep, after which a clock that was set forward is noticed.
const MAX_SLEEP: Duration = Duration::from_mins(1);
/// Shortest sleep: the resolution of timers.
const MIN_SLEEP: Duration = Duration::from_millis(1);

#[derive(Debug, Clone)]
pub(crate) struct Runner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) loops: Arc<LoopDevices>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Runner {
    /// Runs until it is stopped. Work in progress is completed, except for retries of a busy device.
    pub(crate) async fn run(self) {
        while !self.stop.is_cancelled() {
            let (effects, sleep) = self.poll();
            for effect in effects {
                self.tasks.spawn(self.clone().perform(effect));
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.shared.woken() => {}
                () = tokio::time::sleep(sleep) => {}
            }
        }
    }

    fn poll(&self) -> (Vec<Effect>, Duration) {
        let now = self.shared.now();
        let mut world = self.shared.world();
        advance(&mut world, now);
        let due = world.next_due();
        let sleep = due.map_or(MAX_SLEEP, |due| until(now, due).clamp(MIN_SLEEP, MAX_SLEEP));
        (world.effects.take(), sleep)
    }

    async fn perform(self, effect: Effect) {
        let success = loop {
            match self.loops.perform(&effect.work).await {
                Ok(Progress::Done) => break true,
                Ok(Progress::Busy) => {}
                Err(error) => {
                    let error = error_text(&error);
                    tracing::error!(work = ?effect.work, error, "work on a device failed");
                    // A detach cannot be rolled back: as in the real cloud, it is retried until it
                    // succeeds.
                    if !matches!(effect.work, Work::Detach { .. }) {
                        break false;
                    }
                }
            }
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = tokio::time::sleep(RETRY) => {}
            }
        };
        let now = self.shared.now();
        complete(&mut self.shared.world(), now, effect.id, success);
        self.shared.wake();
    }
}
