//! Keeps a world with devices going: lets things happen when they are due, without anybody
//! calling, and does on devices what the world wants done.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::effect::{Effect, Work};
use super::loopdev::{Loops, Progress};
use super::shared::Shared;
use super::spread::until;
use crate::base::Tasks;
use crate::base::chain::chain;

/// How long a busy device is left alone before it is tried again.
const RETRY: Duration = Duration::from_millis(200);
/// Longest sleep: a clock that was set forward is noticed then.
const IDLE: Duration = Duration::from_mins(1);
/// Shortest sleep: timers run in milliseconds.
const BLINK: Duration = Duration::from_millis(1);

/// What the runner and its workers hold.
#[derive(Debug, Clone)]
pub(crate) struct Runner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) loops: Arc<Loops>,
    pub(crate) tasks: Tasks,
    pub(crate) stop: CancellationToken,
}

impl Runner {
    /// Runs until it is stopped. Work that has begun is finished, except for what waits for a busy
    /// device.
    pub(crate) async fn run(self) {
        while !self.stop.is_cancelled() {
            let (effects, sleep) = self.look();
            for effect in effects {
                self.tasks.start(self.clone().perform(effect));
            }
            tokio::select! {
                () = self.stop.cancelled() => {}
                () = self.shared.rung() => {}
                () = tokio::time::sleep(sleep) => {}
            }
        }
    }

    fn look(&self) -> (Vec<Effect>, Duration) {
        let now = self.shared.now();
        let mut world = self.shared.world();
        world.advance(now);
        let due = world.next_due();
        let sleep = due.map_or(IDLE, |due| until(now, due).clamp(BLINK, IDLE));
        (world.effects.take(), sleep)
    }

    async fn perform(self, effect: Effect) {
        let success = loop {
            match self.loops.perform(&effect.work).await {
                Ok(Progress::Done) => break true,
                Ok(Progress::Busy) => {}
                Err(error) => {
                    let error = chain(&error);
                    tracing::error!(work = ?effect.work, error, "work on a device failed");
                    // A detach has no way back: like the real cloud, it is tried until it works.
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
        self.shared.world().complete(now, effect.id, success);
        self.shared.ring();
    }
}
