//! When the next poll for operations is due: as soon as those that it is expected to show done would otherwise, by the
//! poll after it, be late by more than a call is worth. So a duration that is certain is polled for once, right after
//! it; an uncertain one at the likely moments; and many waiters more closely than few.

use std::time::Duration;

use super::durations::Durations;

/// The first step into the future, in seconds, and the ratio of each further one to that before.
const STEP: f64 = 0.01;
const GROWTH: f64 = 1.4;
/// Beyond a minute there is time to decide later.
const HORIZON: f64 = 60.0;
/// With many waiters decisions are made less often: each looks at all of them.
const STEP_PER_WAITER: f64 = 1e-5;

/// What the schedule has to know of one waiter. Ages are in seconds.
#[derive(Debug)]
pub(super) struct Wait<'a> {
    durations: &'a Durations,
    age: f64,
    /// The probability that the operation was not done at the newest poll, answered or not.
    polled: f64,
    /// The same at the newest answered poll. It was not done then.
    answered: f64,
}

impl<'a> Wait<'a> {
    pub(super) fn new(durations: &'a Durations, age: f64, polled: f64, answered: f64) -> Self {
        Self {
            durations,
            age,
            polled: durations.survival(polled),
            answered: durations.survival(answered).max(1e-12),
        }
    }

    /// The probability that a poll in so many seconds is the first to show the end.
    pub(super) fn shown(&self, after: f64) -> f64 {
        (self.polled - self.durations.survival(self.age + after)) / self.answered
    }
}

/// How long to wait before deciding again; zero when a poll is due. `cost` is that of a call, in seconds of one waiter's
/// lateness.
pub(super) fn pause(waits: &[Wait<'_>], cost: f64) -> Duration {
    let step = STEP.max(STEP_PER_WAITER * waits.len() as f64);
    let steps = std::iter::successors(Some(step), |after| Some(after * GROWTH));
    let times = std::iter::once(0.0).chain(steps.take_while(|after| *after < HORIZON));
    let shown = |after| waits.iter().map(|wait| wait.shown(after)).sum::<f64>();
    let times: Vec<(f64, f64)> = times.map(|after| (after, shown(after))).collect();
    let mut best = times.len() - 1;
    loop {
        let (next, _) = times[best];
        let saved = times[..best]
            .iter()
            .map(|(after, shown)| shown * (next - after));
        let most = saved
            .enumerate()
            .max_by(|(_, one), (_, other)| one.total_cmp(other));
        match most {
            Some((earlier, saved)) if saved > cost => best = earlier,
            _ => break,
        }
    }
    // The nearer, the finer: decided again one step before.
    let again = if best > 1 { best - 1 } else { best };
    Duration::from_secs_f64(times[again].0)
}
