//! The operations whose durations are learned.

use super::durations::{BINS, bin, edge};
use crate::model::Category;

/// In seconds. The cloud's clock and the local clock do not agree to the millisecond.
const OFFSET: f64 = 0.005;
const ROUND_SECONDS: [f64; 6] = [0.5, 1.0, 2.0, 3.0, 5.0, 10.0];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// From `CreateDisk` to a disk that has left the status `Creating`.
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
    /// From `CreateSnapshot` to a complete snapshot, which does not need the disk any longer.
    SnapshotComplete,
}

/// An operation on disks of a category, whose durations are learned separately.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationKind {
    pub(super) operation: Operation,
    /// None if the category is unknown, and for resources other than disks.
    category: Option<Category>,
}

impl From<Operation> for OperationKind {
    fn from(operation: Operation) -> Self {
        let category = None;
        Self { operation, category }
    }
}

impl Operation {
    pub fn for_category(self, category: &Category) -> OperationKind {
        let category = Some(category.clone());
        let operation = self;
        OperationKind { operation, category }
    }

    /// The probability of each bin of durations before any was observed: a share at round numbers of seconds, which
    /// clouds and fakes of them favor, and the rest spread widely with a long tail. The tail determines the growing
    /// intervals between the polls for an operation that takes longer than any before.
    pub(super) fn prior(self) -> Vec<f64> {
        let create = [0.25, 0.15, 0.08, 0.03, 0.02, 0.005];
        let attach = [0.03, 0.10, 0.20, 0.06, 0.03, 0.01];
        let (scale, shape, shares) = match self {
            Self::Create => (0.5, 1.2, create),
            Self::Attach | Self::Detach => (1.5, 1.2, attach),
            // Takes effect before the response, as a rule.
            Self::Resize | Self::Modify => (0.1, 1.0, [0.0, 0.10, 0.10, 0.0, 0.02, 0.0]),
            Self::Snapshot | Self::SnapshotAvailable | Self::SnapshotComplete => (2.0, 1.0, attach),
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
