//! The last durations of one kind of operation. A poll shows only that an operation was not done when one request was
//! sent and done when another was: an interval, in which each age is taken to be equally likely. Others that overlap it
//! narrow it, because most durations are alike. So the interval of an operation that the first poll shows done is wide
//! only if none of the last ones was observed more closely, and then the schedule also polls earlier.
//!
//! A duration is the age at which a describe that shows the end can be sent. It may be shorter than the operation
//! itself, because the request takes time to arrive.

use std::collections::VecDeque;

/// The number of durations kept. Older ones are irrelevant.
const MAX_SAMPLES: usize = 32;
/// The weight of the prior in samples.
const PRIOR: f64 = 0.5;
/// The share of operations that are expected to take somewhat longer than each sample.
const LATE: f64 = 0.1;

/// Ages of the table of probabilities. They grow by 8 ms at first, 40 ms at 2 s, 0.9 s at a minute, up to four hours.
const AGES: usize = 658;
const AGES_PER_E: f64 = 64.0;
const SCALE: f64 = 0.5;

/// Durations of one kind of operation, in seconds.
#[derive(Debug)]
pub(super) struct Durations {
    /// The probability of a longer duration than each age of the table, without samples.
    prior: Vec<f64>,
    survival: Vec<f64>,
    /// An operation was not done at the first age, and was done at the second.
    samples: VecDeque<(f64, f64)>,
    is_stale: bool,
}

fn age(index: usize) -> f64 {
    SCALE * ((index as f64 / AGES_PER_E).exp() - 1.0)
}

/// The last age of the table that is not later, and the position between it and the next from 0 to 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "within 0..AGES"
)]
fn position(age: f64) -> (usize, f64) {
    let at = (1.0 + age.max(0.0) / SCALE).ln() * AGES_PER_E;
    let index = (at as usize).min(AGES - 2);
    (index, (at - index as f64).min(1.0))
}

impl Durations {
    /// `prior` is the probability of a longer duration.
    pub(super) fn new(prior: impl Fn(f64) -> f64) -> Self {
        let prior: Vec<f64> = (0..AGES).map(age).map(prior).collect();
        Self {
            survival: prior.clone(),
            prior,
            samples: VecDeque::new(),
            is_stale: false,
        }
    }

    /// What these durations let expect of similar operations.
    pub(super) fn as_prior(&mut self) -> Self {
        self.refresh();
        Self::new(|age| self.survival(age))
    }

    /// Adds an operation that ended between these ages.
    pub(super) fn add(&mut self, after: f64, until: f64) {
        if self.samples.len() == MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back((after, until));
        self.is_stale = true;
    }

    /// Updates the probabilities if there are new samples.
    pub(super) fn refresh(&mut self) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        let mut narrowest: Vec<_> = self.samples.iter().copied().collect();
        narrowest.sort_by(|one, other| (one.1 - one.0).total_cmp(&(other.1 - other.0)));
        let narrowed = |sample: &(f64, f64)| {
            narrowest.iter().fold(*sample, |interval, other| {
                let (after, until) = (interval.0.max(other.0), interval.1.min(other.1));
                if after < until {
                    (after, until)
                } else {
                    interval
                }
            })
        };
        let narrowed: Vec<_> = narrowest.iter().map(narrowed).collect();
        let total = PRIOR + narrowed.len() as f64;
        for (index, survival) in self.survival.iter_mut().enumerate() {
            let age = age(index);
            let longer = narrowed.iter().map(|&(after, until)| {
                if age >= until {
                    return LATE * ((until + SCALE) / (age + SCALE)).powi(10);
                }
                let share = (until - age) / (until - after).max(1e-6);
                LATE + (1.0 - LATE) * share.min(1.0)
            });
            *survival = (PRIOR * self.prior[index] + longer.sum::<f64>()) / total;
        }
    }

    /// The probability that an operation is not done at this age.
    pub(super) fn survival(&self, age: f64) -> f64 {
        let (index, part) = position(age);
        let (earlier, later) = (self.survival[index], self.survival[index + 1]);
        earlier + (later - earlier) * part
    }
}
