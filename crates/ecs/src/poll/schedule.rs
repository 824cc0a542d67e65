//! Schedules polls for operations. A poll is due as soon as the expected lateness that it saves exceeds the cost of a
//! call. So a certain duration is polled for once, right after it; an uncertain one at the likely moments; and many
//! waiters more closely than few.
//!
//! In a crowd (more waiters than a call accepts ids) some operation has always just ended, so that another call would
//! always be due. There a call is sent when it is expected to show many of its rows done.

use std::time::Duration;

use super::durations::Durations;

/// The first step into the future, in seconds, and the ratio of each step to the previous one.
const STEP: f64 = 0.01;
const GROWTH: f64 = 1.4;
/// In seconds. Later times are decided on later.
const HORIZON: f64 = 60.0;
/// With many waiters decisions are made less often: each one visits all of them.
const STEP_PER_WAITER: f64 = 1e-5;
/// The share of its rows that a call for part of a crowd must be expected to show done, approached
/// as more wait, and the minimum number.
const DONE_SHARE: f64 = 0.45;
const MIN_DONE: f64 = 4.0;
/// Otherwise a call for at least one end is sent after so many seconds without a call.
const MAX_IDLE: f64 = 0.25;
/// The number of expected ends over which [`Calibration`] averages.
const CALIBRATION_WINDOW: f64 = 100.0;
/// The weight, in expected ends, of the assumption that all expected ends are observed.
const CALIBRATION_PRIOR: f64 = 20.0;

/// The input of the schedule about one waiter. Ages are in seconds.
#[derive(Debug)]
pub(super) struct Wait<'a> {
    durations: &'a Durations,
    age: f64,
    /// The probability that the operation was not done at the newest poll, with or without a response.
    polled: f64,
    /// The same at the newest poll with a response, which showed it not done.
    responded: f64,
}

impl<'a> Wait<'a> {
    pub(super) fn new(durations: &'a Durations, age: f64, polled: f64, responded: f64) -> Self {
        Self {
            durations,
            age,
            polled: durations.survival(polled),
            responded: durations.survival(responded).max(1e-12),
        }
    }

    /// The probability that a poll in `delay` seconds is the first to show the end.
    pub(super) fn shown(&self, delay: f64) -> f64 {
        (self.polled - self.durations.survival(self.age + delay)) / self.responded
    }
}

/// How long to wait before deciding again; zero when a poll is due. `cost` is the cost of a call in
/// seconds of one waiter's lateness.
pub(super) fn pause(waits: &[Wait<'_>], cost: f64) -> Duration {
    let step = STEP.max(STEP_PER_WAITER * waits.len() as f64);
    let steps = std::iter::successors(Some(step), |after| Some(after * GROWTH));
    let times = std::iter::once(0.0).chain(steps.take_while(|after| *after < HORIZON));
    let ends = |after| waits.iter().map(|wait| wait.shown(after)).sum();
    let times: Vec<(f64, f64)> = times.map(|after| (after, ends(after))).collect();
    let mut best = times.len() - 1;
    loop {
        let (next, _) = times[best];
        let saved = times[..best].iter().map(|(after, ends)| ends * (next - after));
        let most = saved.enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other));
        match most {
            Some((earlier, saved)) if saved > cost => best = earlier,
            _ => break,
        }
    }
    // Decides again one step earlier, where steps are shorter.
    let again = if best > 1 { best - 1 } else { best };
    Duration::from_secs_f64(times[again].0)
}

/// As [`pause`], for a crowd, `idle` seconds after the last poll.
pub(super) fn crowd_pause(waits: &[Wait<'_>], ids: usize, ratio: f64, idle: f64) -> Duration {
    let mut shown: Vec<f64> = waits.iter().map(|wait| wait.shown(0.0)).collect();
    let (_, _, most) = shown.select_nth_unstable_by(waits.len() - ids - 1, f64::total_cmp);
    let expected = ratio * most.iter().sum::<f64>();
    let ids = ids as f64;
    let enough = DONE_SHARE * (1.0 - ids / waits.len() as f64) * ids;
    if expected >= enough.max(MIN_DONE) || expected >= 1.0 && idle >= MAX_IDLE {
        return Duration::ZERO;
    }
    Duration::from_secs_f64(STEP.max(STEP_PER_WAITER * waits.len() as f64))
}

/// The ratio of observed to expected ends of recent calls. Of many operations that began together the shortest end
/// first, and the others are then expected too early.
#[derive(Debug, Default)]
pub(super) struct Calibration {
    expected: f64,
    observed: f64,
}

impl Calibration {
    pub(super) fn expect(&mut self, ends: f64) {
        self.expected += ends;
        if self.expected > CALIBRATION_WINDOW {
            self.expected /= 2.0;
            self.observed /= 2.0;
        }
    }

    pub(super) fn record_end(&mut self) {
        self.observed += 1.0;
    }

    pub(super) fn ratio(&self) -> f64 {
        ((self.observed + CALIBRATION_PRIOR) / (self.expected + CALIBRATION_PRIOR)).clamp(0.05, 1.0)
    }
}
