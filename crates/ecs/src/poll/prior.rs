//! The duration of an operation before any was observed: a share at round numbers of seconds, which clouds and fakes of
//! them favor, and the rest spread widely with a long tail. The tail determines the growing intervals between the polls
//! for an operation that takes longer than any before.

use super::durations::{BINS, bin, edge};
use super::operation::Operation;

/// In seconds. The cloud's clock and the local clock do not agree to the millisecond.
const OFFSET: f64 = 0.005;
const ROUND_SECONDS: [f64; 6] = [0.5, 1.0, 2.0, 3.0, 5.0, 10.0];

/// The prior probability of each bin.
pub(super) fn prior(operation: Operation) -> Vec<f64> {
    let create = [0.25, 0.15, 0.08, 0.03, 0.02, 0.005];
    let attach = [0.03, 0.10, 0.20, 0.06, 0.03, 0.01];
    let (scale, shape, shares) = match operation {
        Operation::Create => (0.5, 1.2, create),
        Operation::Attach | Operation::Detach => (1.5, 1.2, attach),
        // Takes effect before the response, as a rule.
        Operation::Resize | Operation::Modify => (0.1, 1.0, [0.0, 0.10, 0.10, 0.0, 0.02, 0.0]),
        Operation::Snapshot | Operation::SnapshotAvailable => (2.0, 1.0, attach),
    };
    let spread = 1.0 - shares.iter().sum::<f64>();
    let beyond = |seconds: f64| (1.0 + seconds / scale).powf(-shape);
    let width = |at: usize| beyond(edge(at)) - beyond(edge(at + 1));
    let mut density: Vec<f64> = (0..BINS).map(|at| spread * width(at)).collect();
    for (seconds, share) in ROUND_SECONDS.iter().zip(shares) {
        density[bin(seconds + OFFSET)] += share;
    }
    density
}
