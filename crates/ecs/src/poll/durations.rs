//! The distribution of an operation's durations, estimated from polls. A poll shows only that an operation was not done
//! when one request was sent and done when another was: an interval. The estimate is the self-consistent one for
//! interval-censored samples (Turnbull), by expectation maximization over a histogram, with a prior that weighs as much
//! as half a sample.
//!
//! A duration is the age at which a describe that shows the end can be sent. It may be shorter than the operation
//! itself, because the request takes time to arrive.

use std::collections::VecDeque;

/// Bins grow with the age: 8 ms wide at first, 40 ms at 2 s, 0.9 s at a minute. The last ends after four hours.
pub(super) const BINS: usize = 658;
const BINS_PER_E: f64 = 64.0;
const SCALE: f64 = 0.5;

/// The number of samples kept. Older durations are irrelevant.
const MAX_SAMPLES: usize = 64;
/// Samples that the search for a shorter duration uses.
const RECENT: usize = 16;
/// One waiter of this number searches.
const PROBED: usize = 16;
/// The weight of the prior in samples.
const PRIOR: f64 = 0.5;
const ROUNDS: usize = 20;
/// The share of operations that are expected to take somewhat longer than the samples, and the share of these that
/// remains after each further bin.
const LATE: f64 = 0.1;
const DECAY: f64 = 0.85;

/// An operation was not done at the first age, and was done at the second.
#[derive(Debug, Clone, Copy)]
struct Sample {
    after: f64,
    until: f64,
}

/// Durations of one kind of operation, in seconds.
#[derive(Debug)]
pub(super) struct Durations {
    prior: Vec<f64>,
    density: Vec<f64>,
    /// The probability of a longer duration, by the lower edge of each bin.
    survival: Vec<f64>,
    /// The newest first.
    samples: VecDeque<Sample>,
    is_stale: bool,
    waits: usize,
}

/// The lower edge of a bin.
pub(super) fn edge(bin: usize) -> f64 {
    SCALE * ((bin as f64 / BINS_PER_E).exp() - 1.0)
}

/// The bin that an age falls into.
pub(super) fn bin(age: f64) -> usize {
    position(age).0
}

/// The bin that an age falls into, and where in it from 0 to 1.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0..BINS")]
fn position(age: f64) -> (usize, f64) {
    let at = (1.0 + age.max(0.0) / SCALE).ln() * BINS_PER_E;
    let bin = (at as usize).min(BINS - 1);
    (bin, (at - bin as f64).min(1.0))
}

impl Durations {
    pub(super) fn new(prior: Vec<f64>) -> Self {
        let mut new = Self {
            density: prior.clone(),
            prior,
            survival: Vec::new(),
            samples: VecDeque::new(),
            is_stale: false,
            waits: 0,
        };
        new.accumulate();
        new
    }

    /// The probability of each bin.
    pub(super) fn density(&mut self) -> Vec<f64> {
        self.refresh();
        self.density.clone()
    }

    /// Adds an operation that ended between these ages.
    pub(super) fn add(&mut self, after: f64, until: f64) {
        self.samples.push_front(Sample { after, until });
        self.samples.truncate(MAX_SAMPLES);
        self.is_stale = true;
    }

    /// The age at which a wait that begins now should be probed (polled out of schedule): every third wait, and fewer
    /// with many waiters. Where polls succeed at the first attempt, only an earlier one shows that operations have
    /// become faster. It halves the interval that the recent samples leave.
    pub(super) fn probe(&mut self, waiters: usize) -> Option<f64> {
        self.waits += 1;
        let recent = || self.samples.iter().take(RECENT);
        let until = recent().map(|sample| sample.until).reduce(f64::min)?;
        let after = recent().fold(0.75 * until, |after, sample| after.max(sample.after));
        let is_wide = until - after > (0.04 * until).max(0.03);
        let is_due = self.waits.is_multiple_of(3.max(waiters / PROBED));
        (is_wide && is_due).then_some(f64::midpoint(after, until))
    }

    /// Estimates the distribution again if there are new samples.
    pub(super) fn refresh(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let total = PRIOR + self.samples.len() as f64;
        let mut sums = vec![0.0; BINS + 1];
        for _ in 0..ROUNDS {
            let mut shares = vec![0.0; BINS + 1];
            let mut sum = 0.0;
            for (at, density) in self.density.iter().enumerate() {
                sum += density;
                sums[at + 1] = sum;
            }
            for sample in &self.samples {
                let last = bin(sample.until) + 1;
                // An interval begins with the next bin, unless it ends in this one.
                let first = (bin(sample.after) + usize::from(sample.after > 0.0)).min(last - 1);
                let share = 1.0 / (sums[last] - sums[first]).max(1e-12);
                shares[first] += share;
                shares[last] -= share;
            }
            let mut share: f64 = 0.0;
            for (at, density) in self.density.iter_mut().enumerate() {
                share = (share + shares[at]).max(0.0);
                *density = (PRIOR * self.prior[at] + *density * share) / total;
            }
        }
        self.accumulate();
    }

    fn accumulate(&mut self) {
        self.survival = vec![0.0; BINS + 1];
        for at in (0..BINS).rev() {
            self.survival[at] = self.survival[at + 1] + self.density[at];
        }
        let mut late = 0.0;
        for (at, density) in self.density.iter().enumerate() {
            self.survival[at] += late;
            late = (late + LATE * density) * DECAY;
        }
    }

    /// The probability that an operation is not done at this age.
    pub(super) fn survival(&self, age: f64) -> f64 {
        let (bin, part) = position(age);
        let (lower, upper) = (self.survival[bin], self.survival[bin + 1]);
        lower + (upper - lower) * part
    }
}
