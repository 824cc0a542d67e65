//! The operations whose durations are learned, and the prior distribution of each: a share at round numbers of seconds,
//! which clouds and fakes of them favor, and the rest spread widely with a long tail. The tail determines the growing
//! intervals between the polls for an operation that takes longer than any before.

use std::collections::BTreeMap;

use super::durations::{BINS, Durations, bin, edge};
use crate::model::Category;

/// In seconds. The cloud's clock and the local clock do not agree to the millisecond.
const OFFSET: f64 = 0.005;
const ROUND_SECONDS: [f64; 6] = [0.5, 1.0, 2.0, 3.0, 5.0, 10.0];

/// An asynchronous operation of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// From `CreateDisk` to a disk that is no longer `Creating`.
    Create,
    /// From `AttachDisk` to `In_use`.
    Attach,
    /// From `DetachDisk` to a disk without the attachment.
    Detach,
    /// From `ResizeDisk` to the new size.
    Resize,
    /// From `ModifyDiskSpec` to the new specification.
    Modify,
    /// From `CreateSnapshot` to the point-in-time cut.
    Snapshot,
    /// From `CreateSnapshot` to a snapshot that disks can be created from.
    SnapshotAvailable,
}

/// An operation on disks of a category, whose durations are learned separately.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationKind {
    operation: Operation,
    /// None if the caller does not know the category, and for resources other than disks.
    category: Option<Category>,
}

impl From<Operation> for OperationKind {
    fn from(operation: Operation) -> Self {
        Self {
            operation,
            category: None,
        }
    }
}

impl Operation {
    pub fn for_category(self, category: &Category) -> OperationKind {
        OperationKind {
            operation: self,
            category: Some(category.clone()),
        }
    }

    /// The prior probability of each bin.
    fn prior(self) -> Vec<f64> {
        let create = [0.25, 0.15, 0.08, 0.03, 0.02, 0.005];
        let attach = [0.03, 0.10, 0.20, 0.06, 0.03, 0.01];
        let (scale, shape, shares) = match self {
            Self::Create => (0.5, 1.2, create),
            Self::Attach | Self::Detach => (1.5, 1.2, attach),
            // Takes effect before the response, as a rule.
            Self::Resize | Self::Modify => (0.1, 1.0, [0.0, 0.10, 0.10, 0.0, 0.02, 0.0]),
            Self::Snapshot | Self::SnapshotAvailable => (2.0, 1.0, attach),
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
}

impl OperationKind {
    pub(super) fn operation(&self) -> Operation {
        self.operation
    }
}

/// The learned durations of each operation and category.
#[derive(Debug, Default)]
pub(super) struct Learned(BTreeMap<OperationKind, Durations>);

impl Learned {
    /// A category starts with the durations of another category, and detaching with those of attaching.
    pub(super) fn get_or_start(&mut self, kind: &OperationKind) -> &mut Durations {
        let similar = match kind.operation {
            Operation::Detach => [Operation::Detach, Operation::Attach],
            operation => [operation; 2],
        };
        let density = if self.0.contains_key(kind) {
            None
        } else {
            let mut known = self.0.iter_mut();
            let known = known.find(|(known, _)| similar.contains(&known.operation));
            known.map(|(_, durations)| durations.density())
        };
        let prior = || density.unwrap_or_else(|| kind.operation.prior());
        let durations = self.0.entry(kind.clone());
        durations.or_insert_with(|| Durations::new(prior()))
    }

    pub(super) fn get(&self, kind: &OperationKind) -> Option<&Durations> {
        self.0.get(kind)
    }

    /// Estimates the distributions that have new samples.
    pub(super) fn refresh(&mut self) {
        self.0.values_mut().for_each(Durations::refresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_category_starts_with_the_durations_of_another_category() {
        let mut learned = Learned::default();
        let (slow, fast) = (
            Operation::Create.for_category(&Category::CloudEssd),
            Operation::Create.for_category(&Category::CloudAuto),
        );
        for _ in 0..16 {
            learned.get_or_start(&slow).add(7.9, 8.0);
        }
        learned.refresh();
        assert!(learned.get_or_start(&fast).survival(4.0) > 0.9);
        for _ in 0..16 {
            learned.get_or_start(&fast).add(0.9, 1.0);
        }
        learned.refresh();
        let survival = |kind| learned.get(kind).unwrap().survival(4.0);
        assert!(survival(&fast) < 0.1, "{}", survival(&fast));
        assert!(survival(&slow) > 0.9, "{}", survival(&slow));
    }
}
