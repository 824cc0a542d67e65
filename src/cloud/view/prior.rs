//! What is assumed of durations before any has been observed: a share at round numbers of seconds, which clouds and
//! fakes of them favour, and the rest spread widely with a long tail. The tail decides the growing intervals between
//! the polls for an operation that takes longer than ever before.

use super::durations::{BINS, bin, edge};
use super::operation::Operation;

/// The cloud's clock and ours do not agree to the millisecond.
const OFFSET: f64 = 0.005;

/// Seconds, and the share of operations that take exactly that long.
type Rounds = &'static [(f64, f64)];

const CREATE: Rounds = &[
    (0.5, 0.25),
    (1.0, 0.15),
    (2.0, 0.08),
    (3.0, 0.03),
    (5.0, 0.02),
    (10.0, 0.005),
];
const ATTACH: Rounds = &[
    (0.5, 0.03),
    (1.0, 0.10),
    (2.0, 0.20),
    (3.0, 0.06),
    (5.0, 0.03),
    (10.0, 0.01),
];
const AT_ONCE: Rounds = &[(1.0, 0.10), (2.0, 0.10), (5.0, 0.02)];

/// The probability of each bin.
pub(super) fn of(operation: Operation) -> Vec<f64> {
    let (scale, shape, rounds) = match operation {
        Operation::Create => (0.5, 1.2, CREATE),
        Operation::Attach | Operation::Detach => (1.5, 1.2, ATTACH),
        // Takes effect before the response, as a rule.
        Operation::Resize | Operation::Modify => (0.1, 1.0, AT_ONCE),
        Operation::Snapshot | Operation::SnapshotAvailable => (2.0, 1.0, ATTACH),
    };
    let spread = 1.0 - rounds.iter().map(|(_, share)| share).sum::<f64>();
    let beyond = |seconds: f64| (1.0 + seconds / scale).powf(-shape);
    let width = |at: usize| beyond(edge(at)) - beyond(edge(at + 1));
    let mut density: Vec<f64> = (0..BINS).map(|at| spread * width(at)).collect();
    for (seconds, share) in rounds {
        density[bin(seconds + OFFSET)] += share;
    }
    density
}
