//! When the next poll for operations is due: as soon as those that it is expected to show done would otherwise, by the
//! poll after it, be late by more than a call is worth. So a duration that is certain is polled for once, right after
//! it; an uncertain one at the likely moments; and many waiters more closely than few.
//!
//! Of a crowd, which is more waiters than a call takes ids, some operation has just ended at any time, so that another call
//! would always be worth it. There a call is sent when it is expected to show many of its rows done.

use std::time::Duration;

use super::durations::Durations;

/// The first step into the future, in seconds, and the ratio of each further one to that before.
const STEP: f64 = 0.01;
const GROWTH: f64 = 1.4;
/// Beyond a minute there is time to decide later.
const HORIZON: f64 = 60.0;
/// With many waiters decisions are made less often: each looks at all of them.
const STEP_PER_WAITER: f64 = 1e-5;
/// The share of its rows that a call for some of a crowd is expected to show done, the nearer to this the more wait, and
/// the least number.
const NEWS: f64 = 0.45;
const FEWEST: f64 = 4.0;
/// Without that, a call for at least one is sent after so many seconds without another.
const IDLE: f64 = 0.25;
/// For so many expected ends it counts how many calls have shown.
const MEMORY: f64 = 100.0;
/// How many expected ends the assumption is worth that all come.
const TRUST: f64 = 20.0;

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

/// As [`pause`], for a crowd, `idle` seconds after the last poll.
pub(super) fn crowd_pause(waits: &[Wait<'_>], ids: usize, news: &News, idle: f64) -> Duration {
    let mut shown: Vec<f64> = waits.iter().map(|wait| wait.shown(0.0)).collect();
    let (_, _, most) = shown.select_nth_unstable_by(waits.len() - ids - 1, f64::total_cmp);
    let expected = news.share() * most.iter().sum::<f64>();
    let ids = ids as f64;
    let enough = NEWS * (1.0 - ids / waits.len() as f64) * ids;
    if expected >= enough.max(FEWEST) || expected >= 1.0 && idle >= IDLE {
        return Duration::ZERO;
    }
    Duration::from_secs_f64(STEP.max(STEP_PER_WAITER * waits.len() as f64))
}

/// How many ends calls have shown lately, beside how many were expected. Of many operations that began together the
/// shortest end first, and the others are then expected too early.
#[derive(Debug, Default)]
pub(super) struct News {
    expected: f64,
    shown: f64,
}

impl News {
    pub(super) fn expect(&mut self, ends: f64) {
        self.expected += ends;
        if self.expected > MEMORY {
            self.expected /= 2.0;
            self.shown /= 2.0;
        }
    }

    pub(super) fn end(&mut self) {
        self.shown += 1.0;
    }

    fn share(&self) -> f64 {
        ((self.shown + TRUST) / (self.expected + TRUST)).clamp(0.05, 1.0)
    }
}
